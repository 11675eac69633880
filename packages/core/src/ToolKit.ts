import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { JsonObject } from "./Json.js"
import type { Origin } from "./Origin.js"

/** What an agent reads. `structured` says the same as data. */
export interface ToolReply {
  readonly text: string
  readonly isError: boolean
  readonly structured?: JsonObject | undefined
}

/** A tool as data: every harness maps these to its host. `inputSchema` has a root `type: object` and no `$ref`. */
export interface ToolDefinition {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean; readonly openWorldHint: boolean }
}

/** How far a blocking attach is; `progress` strictly increases. */
export interface Progress {
  readonly progress: number
  readonly message: string
}

export interface CallContext {
  readonly origin: Origin
  /** told at once, then at most once a second and at least every 15 s while attach blocks */
  readonly onProgress?: ((progress: Progress) => Effect.Effect<void>) | undefined
  /** the longest that this host lets a call block, in ms: attach returns shortly before it */
  readonly maxBlock?: number | undefined
}

/** The sentinel's tools, the same in every harness (SPEC "The tools"). `call` never fails: what is wrong is a reply. */
export class ToolKit extends Context.Tag("@gcszhn/mcp-sentinel-core/ToolKit")<ToolKit, {
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly call: (name: string, input: unknown, context: CallContext) => Effect.Effect<ToolReply>
}>() {}
