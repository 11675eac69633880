import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

/** Marks every process that starts inside a box, so that one that outlives its host is found. */
const marker = "MCP_SENTINEL_BOX"

/** Somewhere a harness can live without the user's files, settings or secrets. */
export interface HostBox {
  readonly root: string
  readonly home: string
  /** where the harness is started */
  readonly project: string
  /** the whole environment of the harness; nothing of the test's own environment but PATH to Node and the system */
  readonly env: Readonly<Record<string, string>>
}

export interface BoxProcess {
  readonly pid: number
  readonly command: string
}

const folders = ["home", "project", "tmp", "xdg/data", "xdg/config", "xdg/cache", "xdg/state"] as const

const readProc = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return ""
  }
}

/** The living processes that were started with `NAME=value` in their environment, orphans too. Linux only; elsewhere none. */
export const processesWith = (variable: string): Effect.Effect<ReadonlyArray<BoxProcess>> =>
  Effect.sync(() => {
    if (!existsSync("/proc/self/environ")) return []
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name))
      .filter((pid) => readProc(pid, "environ").split("\0").includes(variable))
      .filter((pid) => !/^State:\s+Z/m.test(readProc(pid, "status")))
      .map((pid) => ({ pid: Number(pid), command: readProc(pid, "cmdline").replaceAll("\0", " ").trim() }))
  })

/** The processes that were started inside the box and are alive, orphans too. Linux only; elsewhere none are found. */
export const processesIn = (box: HostBox): Effect.Effect<ReadonlyArray<BoxProcess>> =>
  processesWith(`${marker}=${box.root}`)

const kill = (pid: number, signal: NodeJS.Signals) => Effect.ignore(Effect.try(() => process.kill(pid, signal)))

/** A fresh box; at the end of the scope every process in it is killed, by its id, and the files go. */
export const makeHostBox = (name: string, extra: Readonly<Record<string, string>> = {}) =>
  Effect.acquireRelease(
    Effect.sync((): HostBox => {
      const root = mkdtempSync(join(tmpdir(), `${name}-`))
      for (const folder of folders) mkdirSync(join(root, folder), { recursive: true })
      return {
        root,
        home: join(root, "home"),
        project: join(root, "project"),
        env: {
          PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(":"),
          LANG: "C.UTF-8",
          TERM: "dumb",
          HOME: join(root, "home"),
          TMPDIR: join(root, "tmp"),
          XDG_DATA_HOME: join(root, "xdg/data"),
          XDG_CONFIG_HOME: join(root, "xdg/config"),
          XDG_CACHE_HOME: join(root, "xdg/cache"),
          XDG_STATE_HOME: join(root, "xdg/state"),
          NO_PROXY: "127.0.0.1,localhost",
          [marker]: root,
          ...extra
        }
      }
    }),
    (box) =>
      processesIn(box).pipe(
        Effect.flatMap(Effect.forEach(({ pid }) => kill(pid, "SIGKILL"), { discard: true })),
        Effect.zipRight(Effect.sync(() => rmSync(box.root, { recursive: true, force: true, maxRetries: 5 })))
      )
  )

/** How a process ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface HostProcess {
  readonly pid: number
  readonly stdout: () => string
  readonly stderr: () => string
  /** Writes to standard input, where it was left open. */
  readonly write: (text: string) => Effect.Effect<void>
  readonly ended: Effect.Effect<Ended>
  /** Sends a signal to this one process, and waits for its end. */
  readonly stop: (signal: NodeJS.Signals) => Effect.Effect<Ended>
}

/** Something was waited for in vain. */
export class BoxTimeout extends Data.TaggedError("BoxTimeout")<{ readonly message: string }> {}

/** The program could not be started at all. */
export class StartFailure extends Data.TaggedError("StartFailure")<{ readonly message: string }> {}

export interface Start {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** written to standard input, which is then closed */
  readonly stdin?: string
  /** standard input stays open, for `write` */
  readonly talks?: boolean
}

const collect = (stream: ChildProcess["stdout"]): () => string => {
  let text = ""
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
  })
  return () => text
}

/** Starts a program in the box's project folder. At the end of the scope it gets SIGTERM, then SIGKILL after 5 s. */
export const startIn = (box: HostBox, { args, command, env, stdin, talks }: Start) =>
  Effect.acquireRelease(
    Effect.gen(function*() {
      const child = spawn(command, [...args], { cwd: box.project, env: { ...box.env, ...env }, stdio: "pipe" })
      const stdout = collect(child.stdout)
      const stderr = collect(child.stderr)
      const ended = yield* Deferred.make<Ended>()
      child.once("close", (code, signal) => Deferred.unsafeDone(ended, Effect.succeed({ code, signal })))
      child.stdin.on("error", () => undefined)
      if (talks !== true) child.stdin.end(stdin)
      const pid = yield* Effect.async<number, StartFailure>((resume) => {
        child.once("spawn", () => resume(Effect.succeed(child.pid ?? 0)))
        child.once("error", (error) => resume(new StartFailure({ message: `${command}: ${error.message}` })))
      })
      const started: HostProcess = {
        pid,
        stdout,
        stderr,
        write: (text) => Effect.sync(() => void child.stdin.write(text)),
        ended: Deferred.await(ended),
        stop: (signal) => Effect.zipRight(kill(pid, signal), Deferred.await(ended))
      }
      return started
    }),
    (started) =>
      started.stop("SIGTERM").pipe(
        Effect.disconnect,
        Effect.timeoutOption("5 seconds"),
        Effect.zipRight(kill(started.pid, "SIGKILL")),
        Effect.asVoid
      )
  )

/** Looks every 50 ms until a value is there; the message of the failure is computed when it is needed. */
export const eventually = <A, E, R>(
  look: Effect.Effect<A | undefined, E, R>,
  within: Duration.DurationInput,
  otherwise: () => string
): Effect.Effect<A, E | BoxTimeout, R> =>
  Effect.suspend(() => look).pipe(
    Effect.tap((value) => value === undefined ? Effect.sleep("50 millis") : Effect.void),
    Effect.repeat({ until: (value) => value !== undefined }),
    Effect.timeoutOption(within),
    Effect.map(Option.getOrUndefined),
    Effect.flatMap((value) => value === undefined ? new BoxTimeout({ message: otherwise() }) : Effect.succeed(value))
  )

/** A loopback port that was free a moment ago, for programs that cannot choose one themselves. */
export const freePort: Effect.Effect<number> = Effect.async((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})
