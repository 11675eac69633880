import type { Step } from "../JobScript.js"

/** How a script makes its sentinel end. */
export type End = "completed" | "failed" | "error" | "timeout" | "cancelled"

/**
 * How its end is learnt: by an attach that waits, by the notice, or by the notice after an attach that was given up. An
 * attach that has returned the outcome is all there is to tell; else exactly one notice is due.
 */
export type Learnt = "attach" | "notice" | "abandoned attach"

export interface Scripted {
  readonly steps: ReadonlyArray<Step>
  readonly end: End
  readonly learnt: Learnt
}

/** How many notices are due. */
export const noticesOf = ({ end, learnt }: Scripted): number => end === "cancelled" || learnt === "attach" ? 0 : 1

export const untilDone = { path: "status", is: "eq", value: "done" }
export const failWhen = { path: "status", is: "eq", value: "broken" }

/** The same numbers for the same seed (mulberry32). */
export const seeded = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const running: Step = { json: { status: "running" } }

/** What a server gets through without its sentinel's end being another one. */
const stdioFaults: ReadonlyArray<Step> = [
  { ...running, exit: 3 },
  { ...running, kill: true },
  { ...running, thenExit: 1 },
  { ...running, noise: "starting worker 7" },
  { ...running, stderr: 70_000 },
  { ...running, delay: 700 },
  { isError: "the scheduler is busy" },
  { rpcError: { code: -32_000, message: "try again" } },
  { ...running, bytes: 200_000 }
]

const httpFaults: ReadonlyArray<Step> = [
  { ...running, http: { status: 503 } },
  { ...running, http: { status: 429, headers: { "retry-after": "1" } } },
  { ...running, http: { status: 404, body: "Session not found" } },
  { ...running, http: { end: "reset" } },
  { ...running, http: { end: "close" } },
  { ...running, http: { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Sign in</h1>" } },
  { ...running, delay: 700 },
  { isError: "the scheduler is busy" }
]

const lasts: Readonly<Record<End, Step>> = {
  completed: { json: { status: "done" } },
  failed: { json: { status: "broken" } },
  error: { isError: "the job is gone" },
  timeout: running,
  cancelled: running
}

const ends: ReadonlyArray<End> = ["completed", "completed", "completed", "failed", "error", "timeout", "cancelled"]

const ways: ReadonlyArray<Learnt> = ["attach", "notice", "notice", "abandoned attach"]

const pick = <A>(random: () => number, from: ReadonlyArray<A>, fallback: A): A =>
  from[Math.floor(random() * from.length)] ?? fallback

/** A good look first, one or two faults with good looks between them, and then its end for ever. */
export const scripted = (random: () => number, kind: "stdio" | "http"): Scripted => {
  const end = pick(random, ends, "completed")
  const faults = kind === "stdio" ? stdioFaults : httpFaults
  const middle = Array.from({ length: 1 + Math.floor(random() * 2) }, () => [pick(random, faults, running), running])
  return { end, steps: [running, ...middle.flat(), lasts[end]], learnt: pick(random, ways, "notice") }
}
