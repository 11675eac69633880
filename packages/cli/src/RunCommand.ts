import { gone, processTree } from "@gcszhn/mcp-sentinel-core/mcp/ProcessTree"
import spawn from "cross-spawn"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ChildProcess } from "node:child_process"
import type { Environment } from "./HostEnvironment.js"

export interface CommandSpec {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** the whole environment of the child; its PATH finds `command` */
  readonly env: Environment
  readonly cwd?: string | undefined
  readonly timeout: Duration.DurationInput
}

/** What a command printed before it ended by itself, whatever its exit code. */
export interface CommandResult {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that did not end by itself: it could not be started, or it was ended at its time limit. */
export class CommandFailure extends Schema.TaggedError<CommandFailure>()("CommandFailure", {
  command: Schema.String,
  kind: Schema.Literal("not found", "not started", "timeout"),
  message: Schema.String
}) {}

/** Beyond this many characters per stream the rest is dropped. */
const maxOutput = 16 * 1024 * 1024

/** ms from SIGTERM to SIGKILL, and again for the tree to be gone */
const patience = 500

/**
 * Runs a program without a shell, in a process group of its own, with closed stdin. At the time limit, and when
 * interrupted, the whole group is ended and waited for: SIGTERM, then SIGKILL after 500 ms. What a command leaves in the
 * background when it ends by itself is left alone, and not waited for.
 */
export const runCommand = (spec: CommandSpec): Effect.Effect<CommandResult, CommandFailure> =>
  execute(spec).pipe(
    Effect.timeoutFail({
      duration: spec.timeout,
      onTimeout: () =>
        new CommandFailure({
          command: spec.command,
          kind: "timeout",
          message: `${spec.command} did not end within ${Duration.format(spec.timeout)} and was stopped`
        })
    })
  )

const execute = (spec: CommandSpec): Effect.Effect<CommandResult, CommandFailure> =>
  Effect.async((resume) => {
    const failed = (error: NodeJS.ErrnoException) =>
      resume(
        new CommandFailure({
          command: spec.command,
          kind: error.code === "ENOENT" ? "not found" : "not started",
          message: `${spec.command} could not be started: ${error.code ?? error.message}`
        })
      )
    let child: ChildProcess
    try {
      child = spawn(spec.command, [...spec.args], {
        cwd: spec.cwd,
        env: { ...spec.env },
        stdio: ["ignore", "pipe", "pipe"],
        detached: process.platform !== "win32",
        windowsHide: true
      })
    } catch (error) {
      return failed(error instanceof Error ? error : new Error(String(error)))
    }
    const stdout = collect(child.stdout)
    const stderr = collect(child.stderr)
    child.once("error", failed)
    child.once("exit", (exitCode, signal) => {
      const done = () => resume(Effect.succeed({ exitCode, signal, stdout: stdout(), stderr: stderr() }))
      // a background child may keep the pipes open for ever
      const drained = setTimeout(done, patience)
      child.once("close", () => {
        clearTimeout(drained)
        done()
      })
    })
    return endTree(child)
  })

const collect = (stream: NodeJS.ReadableStream | null): () => string => {
  let text = ""
  stream?.setEncoding("utf8")
  stream?.on("data", (chunk: string) => {
    if (text.length < maxOutput) text += chunk.slice(0, maxOutput - text.length)
  })
  return () => text
}

const endTree = ({ pid }: ChildProcess): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (pid === undefined) return
    const tree = processTree(pid)
    tree.end()
    if (await gone(tree, patience)) return
    tree.kill()
    await gone(tree, patience)
  })
