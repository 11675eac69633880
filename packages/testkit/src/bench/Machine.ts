import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"

/** What a process has used so far. */
export interface Usage {
  /** ms of CPU time */
  readonly cpu: number
  /** MB of memory that is resident */
  readonly rss: number
}

const tick = 10
const page = 4_096

const fromProc = (pid: number): Usage => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number)
  return { cpu: ((fields[11] ?? 0) + (fields[12] ?? 0)) * tick, rss: ((fields[21] ?? 0) * page) / 1e6 }
}

const fromPs = (pid: number): Usage => {
  const text = execFileSync("ps", ["-o", "rss=,time=", "-p", String(pid)], { encoding: "utf8" }).trim()
  const [rss = "0", time = "0"] = text.split(/\s+/)
  const seconds = time.split(":").reduce((sum, part) => sum * 60 + Number(part), 0)
  return { cpu: seconds * 1_000, rss: Number(rss) / 1_000 }
}

/** CPU time comes in steps of 10 ms on Linux, and of 10 ms or more elsewhere. */
export const usageOf = (pid: number): Effect.Effect<Usage> =>
  Effect.sync(() => existsSync("/proc/self/stat") ? fromProc(pid) : fromPs(pid))

/** Open files, pipes and sockets; 0 where the platform does not tell. */
export const handlesOf = (pid: number): Effect.Effect<number> =>
  Effect.sync(() => existsSync(`/proc/${pid}/fd`) ? readdirSync(`/proc/${pid}/fd`).length : 0)

export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)
