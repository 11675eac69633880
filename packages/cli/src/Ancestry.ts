import * as Effect from "effect/Effect"
import { readFile, readlink } from "node:fs/promises"
import { runCommand } from "./RunCommand.js"

/** One running process, as far as the platform tells. */
export interface ProcessInfo {
  readonly pid: number
  readonly argv: ReadonlyArray<string>
  /** path of the program's file */
  readonly exe?: string | undefined
  /** one variable of the environment that the process was started with */
  readonly variable: (name: string) => Effect.Effect<string | undefined>
}

/** Far more than any launcher chain is long. */
const maxDepth = 16

/**
 * The chain of processes from `pid` upwards, nearest first. Linux: /proc. Other Unixes: `ps`, whose command line is
 * split at spaces. Windows: empty. What cannot be read ends the chain.
 */
export const readAncestors = (pid: number, platform: NodeJS.Platform): Effect.Effect<ReadonlyArray<ProcessInfo>> =>
  platform === "linux" ?
    climb(pid, readProc) :
    platform === "win32"
    ? Effect.succeed([])
    : climb(pid, readPs)

interface Linked extends ProcessInfo {
  readonly parent: number
}

const climb = Effect.fnUntraced(function*(pid: number, read: (pid: number) => Effect.Effect<Linked, unknown>) {
  const chain: Array<ProcessInfo> = []
  let next = pid
  while (next > 1 && chain.length < maxDepth) {
    const found = yield* Effect.option(read(next))
    if (found._tag === "None") break
    chain.push(found.value)
    next = found.value.parent
  }
  return chain
})

const readProc = (pid: number): Effect.Effect<Linked, unknown> =>
  Effect.gen(function*() {
    const [cmdline, stat] = yield* Effect.tryPromise(() =>
      Promise.all([readFile(`/proc/${pid}/cmdline`, "utf8"), readFile(`/proc/${pid}/stat`, "utf8")])
    )
    // the command name in the second field may contain spaces and brackets: the parent is the second field after it
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 1).trim().split(" ")[1])
    const exe = yield* Effect.option(Effect.tryPromise(() => readlink(`/proc/${pid}/exe`)))
    return {
      pid,
      parent,
      argv: cmdline.split("\0").slice(0, -1),
      exe: exe._tag === "Some" ? exe.value : undefined,
      variable: (name) =>
        Effect.tryPromise(() => readFile(`/proc/${pid}/environ`, "utf8")).pipe(
          Effect.map((all) => all.split("\0").find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1)),
          Effect.orElseSucceed(() => undefined)
        )
    }
  })

const readPs = (pid: number): Effect.Effect<Linked, unknown> =>
  Effect.gen(function*() {
    const { stdout } = yield* runCommand({
      command: "ps",
      args: ["-ww", "-o", "ppid=,command=", "-p", String(pid)],
      env: { PATH: "/bin:/usr/bin", LC_ALL: "C" },
      timeout: "1 second"
    })
    const match = /^\s*(\d+)\s+(.+)$/m.exec(stdout)
    if (match === null) return yield* Effect.fail("no such process")
    return {
      pid,
      parent: Number(match[1]),
      argv: match[2]!.trim().split(/\s+/),
      variable: () => Effect.succeed(undefined)
    }
  })
