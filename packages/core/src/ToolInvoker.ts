import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { InvokeFailure, Refused } from "./Errors.js"
import type { Json, JsonObject } from "./Json.js"
import type { Origin } from "./Origin.js"
import type { ToolValue } from "./ToolResult.js"

/** A server and a tool as somebody named them. */
export interface ToolTarget {
  readonly server: string
  readonly tool: string
}

/** A target under the names that `invoke` takes, and what the agent should know before it relies on it. */
export interface ResolvedTool extends ToolTarget {
  /** whole sentences for the acknowledgement (for example: each poll runs a tool that is not read-only again) */
  readonly warnings: ReadonlyArray<string>
}

export interface ToolCall extends ToolTarget {
  /** one object for all calls of a task, which tells them from the calls of others */
  readonly args: JsonObject
  readonly origin: Origin
  /** the call must not be repeated, since it may have been carried out although its answer was lost */
  readonly once?: boolean | undefined
  /** what the call before left running, as its invoker described it */
  readonly handle?: Json | undefined
  /** Keeps a handle beyond the end of the process, before something is done that must not be done twice. */
  readonly keep?: ((handle: Json | undefined) => Effect.Effect<void>) | undefined
}

/** How far work is that runs behind calls and is started once; plain calls, which carry their work out, have none. */
export type Work =
  | {
    readonly _tag: "Working"
    /** plain JSON that stands for the work in later calls, in other processes too */
    readonly handle: Json
    /** a clause that says how it goes */
    readonly reason: string
    /** ms that whoever does the work asks to leave until the next call */
    readonly pause: number
    /** completes when the work is known to need a look before that; it may never do so */
    readonly wake?: Effect.Effect<void> | undefined
  }
  /** the value is its result */
  | { readonly _tag: "Ended" }
  /** it has failed, or cannot go on by itself; `reason` is a clause */
  | { readonly _tag: "Failed"; readonly reason: string }

/** The value of a good call. */
export interface Invocation {
  readonly value: ToolValue
  /** a stdio server had to be started again for this call: what it kept in memory is gone */
  readonly restarted: boolean
  /** conditions judge the value of work only when it has ended, and once */
  readonly work?: Work | undefined
}

/**
 * How a harness reaches MCP tools: over connections of the sentinel's own (`mcp/McpInvoker`), or through the host. The
 * engine calls `invoke` once for every poll.
 */
export class ToolInvoker extends Context.Tag("@gcszhn/mcp-sentinel-core/ToolInvoker")<ToolInvoker, {
  /**
   * Turns the names an agent used (raw, public or sanitised) into the ones `invoke` takes, and holds the host's
   * permissions. Fails with `Refused` for an unknown, disabled or denied target; answers without waiting for a call.
   */
  readonly resolve: (target: ToolTarget, origin: Origin) => Effect.Effect<ResolvedTool, Refused>
  /** Calls the tool once; one silent reconnect and repeat belongs to it. Interruption aborts the call. */
  readonly invoke: (call: ToolCall) => Effect.Effect<Invocation, InvokeFailure>
  /** Keeps the server's connection, once it is open, from being closed as idle until the scope ends. */
  readonly hold: (server: string) => Effect.Effect<void, never, Scope.Scope>
  /** Asks for the end of the work that `call.handle` stands for. An invoker whose calls leave no work behind has none. */
  readonly cancel?: ((call: ToolCall) => Effect.Effect<void, InvokeFailure>) | undefined
}>() {}
