import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { judge } from "../Condition.js"
import type { InvokeFailure } from "../Errors.js"
import { select } from "../Selection.js"
import type { EndState, KeptValue, Observation, PollRequest, TaskId, TaskRecord } from "../SentinelTask.js"
import { Settings } from "../Settings.js"
import { TaskStore } from "../TaskStore.js"
import { type Invocation, ToolInvoker, type Work } from "../ToolInvoker.js"
import { fromJson, type ToolValue } from "../ToolResult.js"
import { Pacer } from "./Pacer.js"
import { longestDelay, monotonicOf } from "./time.js"

/** What follows a look: the end of the task, or a pause in ms before the next look. */
export type Step =
  | { readonly _tag: "End"; readonly state: EndState }
  | {
    readonly _tag: "Pause"
    readonly millis: number
    readonly first: boolean
    /** ends the pause early */
    readonly wake?: Effect.Effect<void> | undefined
  }

/** ms that the last look, taken when the deadline has come, may take. */
export const lastLookMillis = 2_000

const longestBackOff = 60_000
const firstBackOff = 1_000

/** What a call means for its task. `errors` is the new count of consecutive failures. */
interface Judgement {
  readonly end: Option.Option<EndState>
  readonly errors: number
  readonly good: boolean
  readonly pending: string
  readonly value?: ToolValue | undefined
  readonly error?: string | undefined
  readonly restarted: boolean
  /** ms that must pass before the next call, whatever the interval */
  readonly atLeast: number
  /** work that goes on */
  readonly working?: Extract<Work, { readonly _tag: "Working" }> | undefined
}

/**
 * One poll: calls the tool, judges what came, and puts it into the store. A call in flight when the deadline comes is
 * interrupted; a deadline that comes during a pause gets one last look.
 */
export const makeLook = Effect.gen(function*() {
  const settings = yield* Settings
  const store = yield* TaskStore
  const invoker = yield* ToolInvoker
  const pacer = new Pacer()

  /** Puts what came into the store, and tells what follows. */
  const settle = (task: TaskRecord, judgement: Judgement, clock: Clock.Clock): Effect.Effect<Step> => {
    const { request } = task
    const now = clock.unsafeCurrentTimeMillis()
    const after = monotonicOf(clock)
    const step = nextStep(task, judgement, after - task.startedMono, (millis) => pacer.pause(after, millis))
    const observation: Observation = {
      poll: task.polls + 1,
      at: now,
      value: judgement.value && keep(judgement.value, settings.maxValueChars),
      error: judgement.error
    }
    const { working } = judgement
    const selection = working === undefined ? request.select : undefined
    const selected = judgement.value && selection &&
      keep(fromJson(select(selection, judgement.value.json)), settings.maxValueChars)
    const observed = store.observe(task.id, observation, (record) => ({
      ...record,
      selected,
      handle: working?.handle ?? record.handle,
      polls: observation.poll,
      consecutiveErrors: judgement.errors,
      everGood: record.everGood || judgement.good,
      restarts: record.restarts + (judgement.restarted ? 1 : 0),
      pending: judgement.pending,
      nextPollAt: step._tag === "Pause" ? now + step.millis : undefined,
      notBeforeMono: judgement.atLeast > 0 ? after + judgement.atLeast : undefined
    }))
    return Effect.as(observed, step)
  }

  const lookAt = (task: TaskRecord, clock: Clock.Clock): Effect.Effect<Step> => {
    const { request } = task
    const before = monotonicOf(clock)
    const remaining = request.timeout === undefined ? Infinity : request.timeout - (before - task.startedMono)
    const overdue = task.polls > 0 && remaining < 1
    const timedOut = (inFlight: boolean) => end({ _tag: "Timeout", reason: timeoutReason(request, task, inFlight) })
    if (overdue && before < (task.notBeforeMono ?? 0)) return Effect.succeed(timedOut(false))
    const call = invoker.invoke({
      server: request.server,
      tool: request.tool,
      args: request.args,
      origin: task.recipient.origin,
      handle: task.handle,
      keep: (handle) => store.update(task.id, (record) => ({ ...record, handle }))
    })
    const settled = (answer: Either.Either<Invocation, InvokeFailure>): Effect.Effect<Step> =>
      Either.isRight(answer)
        ? settle(task, judgeValue(request, answer.right), clock)
        : Effect.flatMap(judgeFailure(task, answer.left), (judgement) => settle(task, judgement, clock))
    if (remaining === Infinity) return Effect.flatMap(Effect.either(call), settled)
    return Effect.either(call).pipe(
      Effect.disconnect,
      Effect.timeoutOption(overdue ? lastLookMillis : remaining),
      Effect.flatMap(Option.match({ onNone: () => Effect.succeed(timedOut(true)), onSome: settled }))
    )
  }

  return (id: TaskId): Effect.Effect<Step> =>
    Effect.clockWith((clock) => Effect.flatMap(Effect.orDie(store.get(id)), (task) => lookAt(task, clock)))
})

const end = (state: EndState): Step => ({ _tag: "End", state })

/** The pause is the interval or longer, and is cut at the deadline, where the last look is taken. */
const nextStep = (
  task: TaskRecord,
  judgement: Judgement,
  elapsed: number,
  paced: (millis: number) => number
): Step => {
  if (Option.isSome(judgement.end)) return end(judgement.end.value)
  const { interval, timeout } = task.request
  const { atLeast, working } = judgement
  const pause = Math.min(longestDelay, paced(Math.ceil(Math.max(interval, atLeast, working?.pause ?? 0))))
  const then = { _tag: "Pause", first: task.polls === 0, wake: working?.wake } as const
  if (timeout === undefined) return { ...then, millis: pause }
  return elapsed >= timeout
    ? end({ _tag: "Timeout", reason: timeoutReason(task.request, { ...task, pending: judgement.pending }, false) })
    : { ...then, millis: Math.min(pause, Math.ceil(timeout - elapsed)) }
}

const timeoutReason = (request: PollRequest, task: TaskRecord, inFlight: boolean): string =>
  `The timeout of ${request.timeout} ms is over${inFlight ? " and the last call did not answer" : ""}; ${task.pending}${
    task.handle === undefined ? "" : "; it was not cancelled, and may go on at its server"
  }`

const judgeConditions = (request: PollRequest, value: ToolValue) => {
  const failed = request.failWhen === undefined ? undefined : judge(request.failWhen, value)
  if (failed?._tag === "Holds") {
    return { end: Option.some<EndState>({ _tag: "Failed", reason: `fail_when holds: ${failed.reason}` }), pending: "" }
  }
  const verdict = judge(request.until, value)
  return verdict._tag === "Holds"
    ? { end: Option.some<EndState>({ _tag: "Completed", reason: verdict.reason }), pending: "" }
    : { end: Option.none<EndState>(), pending: verdict.reason }
}

const judgeValue = (request: PollRequest, { restarted, value, work }: Invocation): Judgement => {
  const base = { errors: 0, good: true, value, error: undefined, restarted, atLeast: 0 }
  if (work === undefined) return { ...base, ...judgeConditions(request, value) }
  if (work._tag === "Working") return { ...base, end: Option.none(), pending: work.reason, working: work }
  const failed = (reason: string) => ({ ...base, end: Option.some<EndState>({ _tag: "Failed", reason }), pending: "" })
  if (work._tag === "Failed") return failed(work.reason)
  const { end, pending } = judgeConditions(request, value)
  return Option.isSome(end)
    ? { ...base, end, pending }
    : failed(`it has completed, but until does not hold for its result: ${pending}`)
}

/** SPEC "Failed calls". */
const judgeFailure = Effect.fnUntraced(function*(task: TaskRecord, failure: InvokeFailure) {
  const base = { good: false, error: failure.message, restarted: false, atLeast: 0 }
  switch (failure._tag) {
    case "FatalFailure":
      return {
        ...base,
        end: Option.some<EndState>({ _tag: "Error", reason: failure.message }),
        errors: task.consecutiveErrors + 1,
        pending: failure.message
      }
    case "ToolFailure": {
      const judged = judgeConditions(task.request, failure.value)
      const errors = task.everGood ? task.consecutiveErrors + 1 : 0
      return {
        ...base,
        end: Option.orElse(judged.end, () => giveUp(task.request, errors, failure.message)),
        errors,
        pending: `the tool answers with an error: ${failure.message}`,
        value: failure.value
      }
    }
    case "TransportFailure": {
      const errors = task.consecutiveErrors + 1
      return {
        ...base,
        end: giveUp(task.request, errors, failure.message),
        errors,
        pending: `the last call failed: ${failure.message}`,
        restarted: failure.restarted ?? false,
        atLeast: Math.max(failure.retryAfter ?? 0, yield* backOff(errors))
      }
    }
  }
})

const giveUp = (request: PollRequest, errors: number, message: string): Option.Option<EndState> =>
  request.maxErrors > 0 && errors >= request.maxErrors
    ? Option.some({
      _tag: "Error",
      reason: `${errors} consecutive calls failed (max_errors), the last with: ${message}`
    })
    : Option.none()

/** Doubles from 1 s to 60 s, with jitter of a quarter downwards so that many tasks do not come back in one moment. */
const backOff = (errors: number): Effect.Effect<number> =>
  Effect.map(
    Random.next,
    (random) => Math.min(longestBackOff, firstBackOff * 2 ** Math.min(errors - 1, 16)) * (1 - random / 4)
  )

/** Cuts at a whole character, and copies what it cuts so that the log does not hold the whole value alive. */
const keep = (value: ToolValue, maxChars: number): KeptValue => {
  if (value.raw.length <= maxChars) return { text: value.raw, length: value.raw.length }
  const endsInside = /[\uD800-\uDBFF]/.test(value.raw.charAt(maxChars - 1))
  const cut = Array.from(value.raw.slice(0, endsInside ? maxChars - 1 : maxChars)).join("")
  return { text: cut, length: value.raw.length }
}
