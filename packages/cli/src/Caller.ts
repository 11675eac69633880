import { isJsonObject } from "@gcszhn/mcp-sentinel-core/Json"
import type { Origin } from "@gcszhn/mcp-sentinel-core/Origin"
import type { Environment } from "./HostEnvironment.js"

export interface Caller {
  readonly origin: Origin
  /** ms after which the host cuts a blocking call */
  readonly maxBlock?: number | undefined
}

/** What the notifier may need to know of the caller to offer it a ready command. */
export interface CallerHandle {
  readonly client: string
}

export const isCallerHandle = (handle: unknown): handle is CallerHandle =>
  isJsonObject(handle) && typeof handle["client"] === "string"

const second = 1_000

/** Codex cuts a call at 300 s and OpenCode at 60 s; progress extends OpenCode's limit and not Codex's. */
const hostLimit = (client: string, env: Environment, progress: boolean): number | undefined => {
  if (client.startsWith("codex")) return 300 * second
  if (client === "opencode") return progress ? undefined : 60 * second
  const claude = Number(env["MCP_TOOL_TIMEOUT"])
  return client.startsWith("claude") && claude > 0 ? claude : undefined
}

/** Codex names its thread with each call, Claude Code its session in the environment; others name nothing. */
const sessionOf = (meta: unknown, env: Environment): string | undefined => {
  const thread = isJsonObject(meta) ? meta["threadId"] : undefined
  return typeof thread === "string" ? thread : env["CLAUDE_CODE_SESSION_ID"]
}

/** Who calls, as far as the host tells it. */
export const callerOf = (
  client: string | undefined,
  meta: unknown,
  env: Environment,
  progress: boolean
): Caller => ({
  origin: { session: sessionOf(meta, env), handle: { client: client ?? "" } },
  maxBlock: hostLimit(client ?? "", env, progress)
})
