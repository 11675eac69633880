import * as Effect from "effect/Effect"
import { NotifyFailure } from "../Errors.js"
import type { Notice, Notifier } from "../Notifier.js"
import { noticeOf } from "../Report.js"
import type { DeliveryState, TaskRecord } from "../SentinelTask.js"
import type { Limits } from "../Settings.js"

/** ms that one delivery may take before it is unknown whether it arrived. */
const tryMillis = 120_000

const retries = 3
const firstPause = 1_000

/**
 * Delivers the notice of an ended task: a known failure is tried again three times with back-off, an unknown outcome
 * once, marked as a possible repeat; a reader who is gone is given up (SPEC "States and notices").
 */
export const deliver = Effect.fnUntraced(function*(
  task: TaskRecord,
  settings: Limits,
  notifier: typeof Notifier.Service,
  onState: (state: DeliveryState) => Effect.Effect<void>
) {
  const attempt = (tries: number, repeated: boolean): Effect.Effect<DeliveryState> =>
    onState({ _tag: "Sending", tries }).pipe(
      Effect.zipRight(notifyOnce(notifier, noticeOf(task, settings, repeated))),
      Effect.as<DeliveryState>({ _tag: "Delivered", tries }),
      Effect.catchAll((failure) => {
        const again = failure.certainty === "failed" ? tries <= retries : failure.certainty === "unknown" && !repeated
        return again
          ? Effect.zipRight(
            Effect.sleep(firstPause * 2 ** (tries - 1)),
            attempt(tries + 1, repeated || failure.certainty === "unknown")
          )
          : Effect.succeed<DeliveryState>({ _tag: "Undelivered", tries, message: failure.message })
      })
    )
  const state = yield* attempt(1, false)
  yield* onState(state)
  if (state._tag === "Undelivered") {
    yield* Effect.logWarning(`The notice of ${task.id} was not delivered (${state.tries} tries): ${state.message}`)
  }
})

const notifyOnce = (notifier: typeof Notifier.Service, notice: Notice): Effect.Effect<void, NotifyFailure> =>
  notifier.notify(notice).pipe(
    Effect.disconnect,
    Effect.timeoutFail({
      duration: tryMillis,
      onTimeout: () =>
        new NotifyFailure({ message: `the host did not take it within ${tryMillis / 1000} s`, certainty: "unknown" })
    }),
    Effect.catchAllDefect((defect) =>
      Effect.fail(new NotifyFailure({ message: `the notifier broke: ${String(defect)}`, certainty: "unknown" }))
    )
  )
