import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Compiled } from "./Condition.js"
import type { Json, JsonObject } from "./Json.js"

/** Names a task; 128 random bits, so that a session cannot guess another's. */
export const TaskId = Schema.String.pipe(Schema.brand("TaskId"))
export type TaskId = typeof TaskId.Type

/** A new id from the platform's cryptographic randomness. */
export const makeTaskId: Effect.Effect<TaskId> = Effect.sync(() =>
  TaskId.make(`sentinel_${globalThis.crypto.randomUUID().replaceAll("-", "")}`)
)
