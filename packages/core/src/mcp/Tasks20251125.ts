import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isJsonObject, type JsonObject } from "../Json.js"
import type { PoolFailure } from "./ConnectionPool.js"
import type { TaskDriver, TaskView, TaskWire } from "./TaskDriver.js"

/**
 * ms for which a server is asked to keep a task; it may keep it for longer or less. Without it the server would choose:
 * a minute, or for ever.
 */
const keptMillis = 24 * 3_600_000
/** ms for what is good to know but not needed: the question behind `input_required`, the result of a failed task */
const asideMillis = 2_000

const invalidParams = -32_602

const statuses = ["working", "input_required", "completed", "failed", "cancelled"] as const

/** The parts of a task that are used, out of whatever came. */
const viewOf = (task: JsonObject, fallbackId?: string): TaskView => {
  const { pollInterval, status, statusMessage, taskId } = task
  return {
    taskId: typeof taskId === "string" ? taskId : fallbackId,
    status: statuses.find((one) => one === status) ?? "working",
    message: typeof statusMessage === "string" ? statusMessage : "",
    pollInterval: typeof pollInterval === "number" && pollInterval > 0 ? pollInterval : 0,
    state: task
  }
}

const gone = (taskId: string, message: string): TaskView => ({
  taskId,
  status: "gone",
  message,
  pollInterval: 0,
  state: null
})

/** The protocol's answer for a task that is unknown or has expired. */
const orGone = (taskId: string) => (failure: PoolFailure): Effect.Effect<TaskView, PoolFailure> =>
  failure.mishap._tag === "Rpc" && failure.mishap.code === invalidParams
    ? Effect.succeed(gone(taskId, failure.mishap.message))
    : Effect.fail(failure)

const result = ({ request }: TaskWire, taskId: string) => request("tasks/result", { taskId })

const aside = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>> =>
  Effect.option(effect).pipe(Effect.disconnect, Effect.timeoutOption(asideMillis), Effect.map(Option.flatten))

/**
 * The question is sent to who asks for the result, and would be blocked on. A client that declares no elicitation, such
 * as this one, is asked by few servers.
 */
const asking = (wire: TaskWire, taskId: string, view: TaskView) =>
  Effect.map(
    aside(Effect.raceFirst(
      wire.news.question(taskId),
      Effect.zipRight(Effect.ignore(result(wire, taskId)), Effect.never)
    )),
    Option.match({
      onNone: () => view,
      onSome: (question): TaskView => ({
        ...view,
        message: view.message === "" ? question : `${view.message} ${question}`
      })
    })
  )

/** The result of a failed task is what the call would have returned: an error, as a result or of JSON-RPC. */
const failing = (wire: TaskWire, taskId: string, view: TaskView) =>
  Effect.map(
    aside(Effect.catchIf(
      result(wire, taskId),
      ({ mishap }) => mishap._tag === "Rpc",
      ({ mishap }) =>
        Effect.succeed({
          isError: true,
          content: [{ type: "text", text: mishap._tag === "Rpc" ? mishap.message : "" }]
        })
    )),
    Option.match({ onNone: () => view, onSome: (result): TaskView => ({ ...view, result }) })
  )

const withEnd = (wire: TaskWire, taskId: string, view: TaskView): Effect.Effect<TaskView, PoolFailure> => {
  switch (view.status) {
    case "completed":
      return result(wire, taskId).pipe(
        Effect.map((result): TaskView => ({ ...view, result })),
        Effect.catchAll(orGone(taskId))
      )
    case "failed":
      return failing(wire, taskId, view)
    case "input_required":
      return asking(wire, taskId, view)
    default:
      return Effect.succeed(view)
  }
}

/** Tasks of MCP 2025-11-25: the client asks for them, call by call, and fetches the result. */
export const tasks20251125: TaskDriver = {
  name: "2025-11-25",
  applies: ({ taskSupport }) => taskSupport !== undefined,
  start: (wire, tool, args) =>
    Effect.flatMap(
      wire.request("tools/call", { name: tool, arguments: args, task: { ttl: keptMillis } }),
      (answer): Effect.Effect<TaskView, PoolFailure> => {
        const task = isJsonObject(answer) ? answer["task"] : undefined
        if (!isJsonObject(task) || typeof task["taskId"] !== "string") {
          return Effect.succeed({ status: "completed", message: "", pollInterval: 0, state: null, result: answer })
        }
        return Effect.succeed(viewOf(task))
      }
    ),
  look: (wire, taskId) =>
    Effect.suspend(() => {
      const told = wire.news.take(taskId)
      return told === undefined
        ? wire.request("tasks/get", { taskId }).pipe(
          Effect.map((task) => viewOf(isJsonObject(task) ? task : {}, taskId)),
          Effect.catchAll(orGone(taskId))
        )
        : Effect.succeed(viewOf(told, taskId))
    }).pipe(Effect.flatMap((view) => withEnd(wire, taskId, view))),
  cancel: (wire, taskId) => Effect.asVoid(wire.request("tasks/cancel", { taskId }))
}
