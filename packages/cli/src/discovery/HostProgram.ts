import * as Effect from "effect/Effect"
import { type Environment, guarded, HostEnvironment } from "../HostEnvironment.js"
import type { CommandFailure, CommandResult } from "../RunCommand.js"
import { runCommand } from "../RunCommand.js"
import { isHost, stem } from "../SelfEntry.js"

/** The host's own process above this one, where there is one. */
export const hostProcess = Effect.fnUntraced(function*(name: string) {
  const chain = yield* Effect.flatMap(HostEnvironment, ({ ancestors }) => ancestors)
  return chain.find((process) =>
    isHost(process) &&
    [process.exe, ...process.argv.slice(0, 2)].some((program) => program !== undefined && stem(program) === name)
  )
})

/** How to start the host's command: the very program that runs above this process, else the one on PATH. */
export const hostCommand = Effect.fnUntraced(function*(name: string) {
  const running = yield* hostProcess(name)
  return running?.exe !== undefined && stem(running.exe) === name ? running.exe : name
})

export interface HostRun {
  readonly name: string
  readonly args: ReadonlyArray<string>
  readonly env: Environment
  /** ms */
  readonly timeout: number
}

/** Runs the host's command in the session's folder, with the recursion guard. */
export const runHost = Effect.fnUntraced(function*({ args, env, name, timeout }: HostRun) {
  const { cwd } = yield* HostEnvironment
  return yield* runCommand({ command: yield* hostCommand(name), args, env: guarded(env), cwd, timeout })
})

const ansi = /\p{Cc}\[[0-9;]*[A-Za-z]/gu

/** What a failed command said, without colours, warnings and stack traces: its first lines that tell the error. */
export const complaint = ({ stderr }: CommandResult): string => {
  const lines = stderr.replaceAll(ansi, "").split("\n").map((line) => line.trim()).filter((line) => line !== "")
  const start = Math.max(0, lines.findIndex((line) => /error/i.test(line)))
  const end = lines.findIndex((line, index) => index > start && /^stack backtrace/i.test(line))
  return lines.slice(start, end === -1 ? start + 6 : Math.min(end, start + 6)).join(" ").slice(0, 500)
}

/** One sentence for a host command that brought nothing, with the next step. */
export const hostProblem = (line: string, failure: CommandFailure | CommandResult, advice: string): string => {
  if (!("kind" in failure)) {
    const said = complaint(failure)
    const ended = failure.signal === null
      ? `ended with exit code ${failure.exitCode}`
      : `was ended by ${failure.signal}`
    return `\`${line}\` ${ended}${said === "" ? "" : `: ${said}`}. ${advice}`
  }
  if (failure.kind === "not found") return `\`${line}\` could not be run: the program was not found on PATH. ${advice}`
  return `\`${line}\`: ${failure.message}. ${advice}`
}
