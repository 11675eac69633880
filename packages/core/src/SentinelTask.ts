import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Compiled } from "./Condition.js"
import type { Json, JsonObject } from "./Json.js"
import type { Recipient } from "./Notifier.js"
import type { Selection } from "./Selection.js"
import type { ToolTarget } from "./ToolInvoker.js"

/** Names a task; 122 random bits, so that one session cannot guess another's. */
export const TaskId = Schema.String.pipe(Schema.brand("TaskId"))
export type TaskId = typeof TaskId.Type

/** A new id from the platform's cryptographic randomness. */
export const makeTaskId: Effect.Effect<TaskId> = Effect.sync(() =>
  TaskId.make(`sentinel_${globalThis.crypto.randomUUID().replaceAll("-", "")}`)
)

/** What to wait for; every static check has passed and names are resolved. Times are in ms. */
export interface PollRequest extends ToolTarget {
  readonly args: JsonObject
  readonly interval: number
  /** longest total duration */
  readonly timeout?: number | undefined
  readonly until: Compiled
  readonly failWhen?: Compiled | undefined
  /** consecutive failed calls at which the task gives up; 0 = never */
  readonly maxErrors: number
  /** the part of the value that texts show; none = all of it */
  readonly select?: Selection | undefined
  /** submitted once before the first poll; `args` may take values from its result */
  readonly start?: { readonly tool: string; readonly args: JsonObject } | undefined
}

/** A value as the poll log keeps it: `text` may be shorter than the `length` characters that came. */
export interface KeptValue {
  readonly text: string
  readonly length: number
}

/** What one poll brought. A failed call may carry the value of the tool's error. */
export interface Observation {
  /** 1 for the first poll */
  readonly poll: number
  /** wall clock, ms since the epoch */
  readonly at: number
  readonly value?: KeptValue | undefined
  readonly error?: string | undefined
}

/** SPEC "States and notices". `Polling` is the only state that is left, and it is left once. */
export type TaskState =
  | { readonly _tag: "Polling" }
  | { readonly _tag: "Completed"; readonly reason: string }
  | { readonly _tag: "Failed"; readonly reason: string }
  | { readonly _tag: "Error"; readonly reason: string }
  | { readonly _tag: "Timeout"; readonly reason: string }
  | { readonly _tag: "Cancelled" }

export type EndState = Exclude<TaskState, { readonly _tag: "Polling" }>

/** What became of the one notice of a task. */
export type DeliveryState =
  /** the task has not ended */
  | { readonly _tag: "Waiting" }
  /** nobody asked for a notice, or the task was cancelled */
  | { readonly _tag: "None" }
  | { readonly _tag: "Sending"; readonly tries: number }
  | { readonly _tag: "Delivered"; readonly tries: number }
  /** a reply to the agent told the outcome already */
  | { readonly _tag: "Told" }
  | { readonly _tag: "Undelivered"; readonly tries: number; readonly message: string }

/** All that is known of a task but its poll log. */
export interface TaskRecord {
  readonly id: TaskId
  readonly request: PollRequest
  readonly recipient: Recipient
  readonly notifies: boolean
  readonly state: TaskState
  readonly polls: number
  readonly consecutiveErrors: number
  /** a call has brought a good value */
  readonly everGood: boolean
  /** times that a stdio server had to be started again under this task */
  readonly restarts: number
  readonly last?: Observation | undefined
  /** what `select` shows of the last value */
  readonly selected?: KeptValue | undefined
  /** the result of `start`, once it was submitted */
  readonly submitted?: Json | undefined
  /** stands for the work that the calls started once and only watch since (`ToolInvoker.Work`) */
  readonly handle?: Json | undefined
  /** why the condition does not hold yet, or what the last call's failure was */
  readonly pending: string
  /** wall clock, ms since the epoch */
  readonly startedAt: number
  /** wall clock, ms since the epoch; while a pause lasts */
  readonly nextPollAt?: number | undefined
  /** monotonic clock, ms: for durations only */
  readonly startedMono: number
  /** monotonic clock, ms: a server's Retry-After or a back-off forbids calls before it */
  readonly notBeforeMono?: number | undefined
  readonly endedMono?: number | undefined
  readonly delivery: DeliveryState
}

export const isActive = (task: TaskRecord): boolean => task.state._tag === "Polling"
