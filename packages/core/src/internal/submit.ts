import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { InvokeFailure } from "../Errors.js"
import { fillObject } from "../Selection.js"
import type { EndState, PollRequest, TaskId } from "../SentinelTask.js"
import { TaskStore } from "../TaskStore.js"
import { type Invocation, ToolInvoker } from "../ToolInvoker.js"

/**
 * Submits the job of `start` once, before the first poll, over the connection that the polls will use, and puts values of
 * its result into the polls' arguments. None: polling can begin. A submission is never repeated: when its answer was
 * lost, the task ends as an error that says so.
 */
export const makeSubmit = Effect.gen(function*() {
  const store = yield* TaskStore
  const invoker = yield* ToolInvoker

  const accepted = Effect.fnUntraced(function*(id: TaskId, request: PollRequest, { value }: Invocation) {
    const args = fillObject(request.args, value.json)
    if (Either.isLeft(args)) {
      return failed(`start was submitted, but its result lacks what args take from it: ${args.left}`)
    }
    yield* store.update(id, (record) => ({
      ...record,
      request: { ...record.request, args: args.right },
      submitted: value.json
    }))
    return Option.none<EndState>()
  })

  return Effect.fnUntraced(function*(id: TaskId) {
    const { recipient, request } = yield* Effect.orDie(store.get(id))
    if (request.start === undefined) return Option.none<EndState>()
    const call = invoker.invoke({ ...request.start, server: request.server, origin: recipient.origin, once: true })
    const answer = yield* Effect.either(call).pipe(Effect.disconnect, Effect.timeoutOption(request.timeout ?? Infinity))
    if (Option.isNone(answer)) {
      return Option.some<EndState>({
        _tag: "Timeout",
        reason:
          `The timeout of ${request.timeout} ms is over, and start did not answer; whether the job runs is unknown`
      })
    }
    return Either.isLeft(answer.value)
      ? failed(submissionReason(answer.value.left))
      : yield* accepted(id, request, answer.value.right)
  })
})

const failed = (reason: string): Option.Option<EndState> => Option.some({ _tag: "Error", reason })

const submissionReason = (failure: InvokeFailure): string =>
  failure._tag === "TransportFailure"
    ? `start was sent once and its answer was lost, so whether the job runs is unknown; it is not sent again: ${failure.message}`
    : `start was refused: ${failure.message}`
