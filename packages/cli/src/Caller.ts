import { isJsonObject } from "@gcszhn/mcp-sentinel-core/Json"
import type { Origin } from "@gcszhn/mcp-sentinel-core/Origin"
import type { Environment } from "./HostEnvironment.js"

export interface Caller {
  readonly origin: Origin
  /** ms after which the host cuts a blocking call */
  readonly maxBlock?: number | undefined
}

const second = 1_000

/**
 * ms after which the host cuts a call: what the sentinel's own entry says, else the host's default. Progress extends
 * OpenCode's limit and no other.
 */
const hostLimit = (
  client: string,
  ownTimeout: number | undefined,
  env: Environment,
  progress: boolean
): number | undefined => {
  if (client.startsWith("codex")) return ownTimeout ?? 300 * second
  if (client === "opencode") return progress ? undefined : ownTimeout ?? 60 * second
  const claude = ownTimeout ?? Number(env["MCP_TOOL_TIMEOUT"])
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
  progress: boolean,
  ownTimeout?: number
): Caller => ({
  origin: { session: sessionOf(meta, env) },
  maxBlock: hostLimit(client ?? "", ownTimeout, env, progress)
})
