import type * as Effect from "effect/Effect"
import { isJsonObject, type Json, type JsonObject } from "../Json.js"
import type { ListedTool } from "./Connection.js"
import type { PoolFailure } from "./ConnectionPool.js"
import type { TaskNews } from "./TaskNews.js"
import { tasks20251125 } from "./Tasks20251125.js"

/** What a driver needs of a connection. */
export interface TaskWire {
  readonly request: (method: string, params: JsonObject) => Effect.Effect<unknown, PoolFailure>
  readonly news: TaskNews
}

/** How a task is, whatever generation of the protocol told it. */
export interface TaskView {
  /** none: the server has carried the call out at once, and `result` is what it brought */
  readonly taskId?: string | undefined
  /** `gone`: the server does not know the task (any more) */
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled" | "gone"
  /** the server's own words, or what it asks for; may be empty */
  readonly message: string
  /** ms that the server asks to leave between two looks; 0 where it does not say */
  readonly pollInterval: number
  /** the task as the server tells it */
  readonly state: Json
  /** what the call brought, once it has ended: a `tools/call` result */
  readonly result?: unknown
}

/** One generation of MCP Tasks. */
export interface TaskDriver {
  /** stands for the generation in handles */
  readonly name: string
  /** The server runs calls of this tool as tasks. */
  readonly applies: (tool: ListedTool) => boolean
  /** Starts the task: the one request that must not be repeated. The end of a task is left to `look`. */
  readonly start: (wire: TaskWire, tool: string, args: JsonObject) => Effect.Effect<TaskView, PoolFailure>
  /** Looks how the task is, with its result where it has ended. */
  readonly look: (wire: TaskWire, taskId: string) => Effect.Effect<TaskView, PoolFailure>
  readonly cancel: (wire: TaskWire, taskId: string) => Effect.Effect<void, PoolFailure>
}

const drivers: ReadonlyArray<TaskDriver> = [tasks20251125]

export const driverFor = (tool: ListedTool | undefined): TaskDriver | undefined =>
  tool && drivers.find((driver) => driver.applies(tool))

/** A handle: which driver, and the task's id; none while the answer to its start is awaited. */
export const handleOf = ({ name }: TaskDriver, taskId?: string): Json =>
  taskId === undefined ? { tasks: name } : { tasks: name, taskId }

export const readHandle = (
  handle: Json
): { readonly driver: TaskDriver; readonly taskId: string | undefined } | undefined => {
  if (!isJsonObject(handle)) return undefined
  const { taskId, tasks } = handle
  const driver = drivers.find(({ name }) => name === tasks)
  return driver && { driver, taskId: typeof taskId === "string" ? taskId : undefined }
}
