import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import { progress } from "../Report.js"
import type { TaskRecord } from "../SentinelTask.js"
import type { Progress } from "../Tools.js"
import { monotonic } from "./time.js"

const tickMillis = 1_000
const heartbeatMillis = 15_000

interface Sent {
  readonly count: number
  readonly polls: number
  readonly at: number
}

/**
 * Tells how a wait goes, for ever: at once, then when a poll has been made but at most once a second, and at least every
 * 15 s (SPEC "mcp_sentinel_attach"). A task that is gone is told no more.
 */
export const withProgress = <E>(
  task: Effect.Effect<TaskRecord, E>,
  onProgress: (progress: Progress) => Effect.Effect<void>
): Effect.Effect<never> =>
  Effect.gen(function*() {
    const sent = yield* Ref.make<Sent>({ count: 0, polls: -1, at: 0 })
    const tick = Effect.gen(function*() {
      const record = yield* task
      const now = yield* monotonic
      const before = yield* Ref.get(sent)
      if (before.polls === record.polls && now - before.at < heartbeatMillis) return
      yield* Ref.set(sent, { count: before.count + 1, polls: record.polls, at: now })
      yield* onProgress({ progress: before.count + 1, message: progress(record, now) })
    })
    yield* Effect.repeat(Effect.ignore(tick), Schedule.spaced(tickMillis))
    return yield* Effect.never
  })
