import * as Schema from "effect/Schema"
import { clip } from "./Excerpt.js"
import { isToolValue } from "./ToolResult.js"

/**
 * A request that was not accepted; nothing was started. `message` says what is wrong and what would be right, and is
 * shown to the agent as it stands (SPEC "mcp_sentinel_poll", refused at once).
 */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  message: Schema.String,
  field: Schema.optional(Schema.String)
}) {}

/** No task has this id: it never existed, or its TTL is over. */
export class TaskNotFound extends Schema.TaggedError<TaskNotFound>()("TaskNotFound", { id: Schema.String }) {
  override get message() {
    return `No sentinel has the id ${
      JSON.stringify(clip(this.id, 80))
    }. Active ones: mcp_sentinel_status with action "list".`
  }
}

/** A call that can never succeed as it was asked: unknown tool, 401/403, invalid arguments, command not found. */
export class FatalFailure extends Schema.TaggedError<FatalFailure>()("FatalFailure", {
  server: Schema.String,
  tool: Schema.String,
  message: Schema.String
}) {}

/** The tool answered with an error (`isError: true`, or a JSON-RPC error that is not fatal); its value can be judged. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  server: Schema.String,
  tool: Schema.String,
  message: Schema.String,
  value: Schema.declare(isToolValue)
}) {}

/**
 * No answer came although the invoker reconnected and repeated the call once: lost connection, crash, expired session,
 * 5xx, 429, call timeout.
 */
export class TransportFailure extends Schema.TaggedError<TransportFailure>()("TransportFailure", {
  server: Schema.String,
  tool: Schema.String,
  message: Schema.String,
  /** ms that the server asked to wait (HTTP Retry-After) */
  retryAfter: Schema.optional(Schema.Number),
  /** a stdio server had to be started again: what it kept in memory is gone */
  restarted: Schema.optional(Schema.Boolean)
}) {}

/** Why a call brought no good value (SPEC "Failed calls"). */
export type InvokeFailure = FatalFailure | ToolFailure | TransportFailure

/**
 * A notice that did not reach its reader. `failed`: surely not delivered, worth another try. `unknown`: it may have
 * arrived. `gone`: the reader no longer exists, no try can help.
 */
export class NotifyFailure extends Schema.TaggedError<NotifyFailure>()("NotifyFailure", {
  message: Schema.String,
  certainty: Schema.Literal("failed", "unknown", "gone")
}) {}
