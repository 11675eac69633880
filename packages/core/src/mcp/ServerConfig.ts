import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Refused } from "../Errors.js"
import type { Origin } from "../Origin.js"
import type { ToolTarget } from "../ToolInvoker.js"

/** A server started as a child process. `env` is the whole environment of the child, as the harness would give it. */
export interface StdioServer {
  readonly _tag: "stdio"
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string | undefined
}

/** A server behind a URL. `auto` tries Streamable HTTP first and falls back to SSE (MCP 2025-11-25, transports). */
export interface HttpServer {
  readonly _tag: "http"
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly transport: "auto" | "http" | "sse"
}

/** One server of the harness's configuration, every reference in it already expanded. */
export interface ServerConfig {
  readonly name: string
  readonly endpoint: StdioServer | HttpServer
  /** longest duration of one call in ms (default 60 000), extended by progress */
  readonly callTimeout?: number | undefined
  /** longest duration of connecting in ms (default 30 000) */
  readonly startupTimeout?: number | undefined
  /** only these tools may be called */
  readonly enabledTools?: ReadonlyArray<string> | undefined
  /** these tools may not be called */
  readonly disabledTools?: ReadonlyArray<string> | undefined
}

/** Why an entry of the configuration is not usable; `reason` is a whole clause that can be shown (no secrets). */
export interface UnusableServer {
  readonly name: string
  readonly kind: "disabled" | "self" | "broken"
  readonly reason: string
}

/** What discovery found. */
export interface Catalogue {
  readonly servers: ReadonlyArray<ServerConfig & { readonly source: string }>
  readonly unusable: ReadonlyArray<UnusableServer & { readonly source: string }>
  /** what went wrong as a whole (a missing file, a failing host command), each with its next step; no secrets */
  readonly problems: ReadonlyArray<string>
}

/** The servers that the harness has. */
export class McpServers extends Context.Tag("@gcszhn/mcp-sentinel-core/mcp/McpServers")<McpServers, {
  /** the catalogue, discovered on first use and kept */
  readonly catalogue: Effect.Effect<Catalogue>
  /** discovers again: an unknown server was asked for */
  readonly refresh: Effect.Effect<Catalogue>
}>() {}

/** The host's own permission rules, and how it makes public names. */
export class HostRules extends Context.Reference<HostRules>()("@gcszhn/mcp-sentinel-core/mcp/HostRules", {
  defaultValue: (): {
    /** Refuses what the host denies its agent, naming the rule; asks the user where the host can. */
    readonly permit: (target: ToolTarget, origin: Origin) => Effect.Effect<void, Refused>
    /** The names under which the host shows a tool to its agent (`my_jobs_sleep`, `mcp__jobs__sleep`). */
    readonly publicNames: (target: ToolTarget) => ReadonlyArray<string>
  } => ({ permit: () => Effect.void, publicNames: () => [] })
}) {}
