import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { FatalFailure } from "../Errors.js"
import type { Invocation, ToolCall, Work } from "../ToolInvoker.js"
import { fromCallToolResult, fromJson } from "../ToolResult.js"
import type { ListedTool, ToolList } from "./Connection.js"
import type { Loan, PoolFailure } from "./ConnectionPool.js"
import { type Judgement, judgeResult } from "./Failures.js"
import { driverFor, handleOf, readHandle, type TaskDriver, type TaskView, type TaskWire } from "./TaskDriver.js"
import type { TaskNews } from "./TaskNews.js"
import { onlyAsTask, taskFailed, taskGone, taskNeedsInput, taskRefused, taskUnknown, taskWorking } from "./Texts.js"

/** What a call brought: a result, or how the task is that it has started or watches. */
export type Answer =
  | { readonly _tag: "Result"; readonly result: unknown }
  | { readonly _tag: "Task"; readonly view: TaskView; readonly driver: TaskDriver; readonly news: TaskNews }

/** One try of a call that brought no answer, already judged. */
export interface Failed {
  readonly _tag: "Failed"
  readonly judgement: Judgement
}

type Judge = (failure: PoolFailure) => Effect.Effect<Failed>

const fatal = (message: string): Failed => ({
  _tag: "Failed",
  judgement: { kind: "fatal", message, reconnect: false, repeat: false }
})

export const wireOf = (loan: Loan, signal: AbortSignal): TaskWire => ({
  request: (method, params) => loan.request(method, params, signal),
  news: loan.taskNews
})

const plainly = (call: ToolCall, loan: Loan, signal: AbortSignal, judge: Judge): Effect.Effect<Answer, Failed> =>
  Effect.matchEffect(loan.call(call.tool, call.args, signal), {
    onFailure: (failure) => Effect.flatMap(judge(failure), Effect.fail),
    onSuccess: (result) => Effect.succeed<Answer>({ _tag: "Result", result })
  })

/** The tool as the server lists it; asks for the list only where it is not known yet, or lacks the tool. */
const listed = (loan: Loan, tool: string): Effect.Effect<ListedTool | undefined, PoolFailure> => {
  const of = (list: ToolList) => list.tools.find(({ name }) => name === tool)
  const known = Option.flatMap(loan.knownTools(), (list) => Option.fromNullable(of(list)))
  return Option.isSome(known) ? Effect.succeed(known.value) : Effect.map(loan.tools, of)
}

/** An error of the protocol's own requests is no answer of the tool, which conditions could judge. */
const asTransport = (failed: Failed): Failed =>
  failed.judgement.kind === "tool" ? { ...failed, judgement: { ...failed.judgement, kind: "transport" } } : failed

/** Starts the task. What became of a request that brought no answer is unknown, so that it is never repeated. */
const startTask = Effect.fnUntraced(function*(
  driver: TaskDriver,
  call: ToolCall,
  wire: TaskWire,
  judge: Judge
) {
  const { keep = () => Effect.void } = call
  yield* keep(handleOf(driver))
  return yield* Effect.catchAll(
    driver.start(wire, call.tool, call.args),
    Effect.fnUntraced(function*(failure) {
      const failed = yield* judge(failure)
      const { kind, message, unbegun } = failed.judgement
      if (kind === "transport" && unbegun !== true) return yield* Effect.fail(fatal(taskUnknown(call, message)))
      yield* keep(undefined)
      return yield* Effect.fail(kind === "tool" ? fatal(taskRefused(message)) : failed)
    })
  )
})

/** Calls the tool; where its server runs it as a task, starts that once, and watches it from then on. */
export const answerOver = (
  call: ToolCall,
  loan: Loan,
  signal: AbortSignal,
  judge: Judge
): Effect.Effect<Answer, Failed> =>
  loan.offersTasks || call.handle !== undefined
    ? taskOver(call, loan, signal, judge)
    : plainly(call, loan, signal, judge)

const taskOver = Effect.fnUntraced(function*(call: ToolCall, loan: Loan, signal: AbortSignal, judge: Judge) {
  const wire = wireOf(loan, signal)
  const task = (driver: TaskDriver, view: TaskView): Answer => ({ _tag: "Task", driver, view, news: loan.taskNews })
  const judged = (failure: PoolFailure) => Effect.flatMap(judge(failure), (failed) => Effect.fail(asTransport(failed)))
  if (call.handle !== undefined) {
    const known = readHandle(call.handle)
    if (known?.taskId === undefined) return yield* Effect.fail(fatal(taskUnknown(call)))
    return task(known.driver, yield* Effect.catchAll(known.driver.look(wire, known.taskId), judged))
  }
  const tool = yield* Effect.catchAll(listed(loan, call.tool), judged)
  const driver = driverFor(tool)
  if (driver === undefined) return yield* plainly(call, loan, signal, judge)
  if (call.once === true) {
    return tool?.taskSupport === "required"
      ? yield* Effect.fail(fatal(onlyAsTask(call)))
      : yield* plainly(call, loan, signal, judge)
  }
  return task(driver, yield* startTask(driver, call, wire, judge))
})

/** A result that is an error fails its task; `-32602` as text means that the call could never work. */
const ended = (call: ToolCall, view: TaskView): Effect.Effect<Work, FatalFailure> => {
  const error = view.result === undefined ? undefined : judgeResult(view.result, call)
  if (error?.kind === "fatal") return Effect.fail(new FatalFailure({ ...targetOf(call), message: error.message }))
  return Effect.succeed(
    error === undefined && view.status === "completed"
      ? { _tag: "Ended" }
      : { _tag: "Failed", reason: taskFailed(view, error?.message ?? "") }
  )
}

const targetOf = ({ server, tool }: ToolCall) => ({ server, tool })

const workOf = (
  call: ToolCall,
  { driver, news, view }: Extract<Answer, { readonly _tag: "Task" }>
): Effect.Effect<Work, FatalFailure> => {
  const { pollInterval, status, taskId } = view
  if (status === "gone") return Effect.fail(new FatalFailure({ ...targetOf(call), message: taskGone(call, view) }))
  const started = call.handle === undefined
  if (taskId !== undefined && (started || status === "working")) {
    return Effect.succeed({
      _tag: "Working",
      handle: handleOf(driver, taskId),
      reason: taskWorking(view),
      pause: pollInterval,
      wake: status === "working" ? news.told(taskId) : Effect.void
    })
  }
  if (status === "input_required") return Effect.succeed({ _tag: "Failed", reason: taskNeedsInput(view) })
  return ended(call, view)
}

/** What the engine is told of a task. Its value is its result, once there is one. */
export const invocationOf = (
  call: ToolCall,
  answer: Extract<Answer, { readonly _tag: "Task" }>,
  restarted: boolean
): Effect.Effect<Invocation, FatalFailure> =>
  Effect.map(workOf(call, answer), (work) => ({
    value: answer.view.result === undefined ? fromJson(answer.view.state) : fromCallToolResult(answer.view.result),
    restarted,
    work
  }))

/** Tells the server that a task is no longer wanted. */
export const cancelOver = (
  call: ToolCall,
  loan: Loan,
  signal: AbortSignal
): Effect.Effect<void, PoolFailure> => {
  const known = call.handle === undefined ? undefined : readHandle(call.handle)
  return known?.taskId === undefined ? Effect.void : known.driver.cancel(wireOf(loan, signal), known.taskId)
}
