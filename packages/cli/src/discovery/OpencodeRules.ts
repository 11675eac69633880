import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import { wildcard } from "./Pattern.js"
import { publicNames } from "./PublicNames.js"
import { isFields } from "./ServerEntry.js"

type Config = Readonly<Record<string, unknown>>

interface Rule {
  readonly pattern: string
  readonly action: unknown
  readonly text: string
}

/**
 * What opencode's configuration denies or disables: `permission` and `tools`, the agent's own after the global ones;
 * the last rule that matches decides, as in opencode. A stdio server is not told which agent calls: the rules of the
 * default agent count. `ask` is no denial: opencode asks about the sentinel's own tool.
 */
export const opencodeDenies = (config: Config) => {
  const agent = typeof config.default_agent === "string" ? config.default_agent : "build"
  const own = isFields(config.agent) && isFields(config.agent[agent]) ? config.agent[agent] : {}
  const permissions = [
    ...permissionRules("permission", config.permission),
    ...permissionRules(`agent.${agent}.permission`, own.permission)
  ]
  const tools = [...toolRules("tools", config.tools), ...toolRules(`agent.${agent}.tools`, own.tools)]
  return (target: ToolTarget): string | undefined => {
    const [name = ""] = publicNames("opencode")(target)
    const decides = (rules: ReadonlyArray<Rule>) => rules.findLast(({ pattern }) => wildcard(pattern)(name))
    const denied = [decides(tools), decides(permissions)].find((rule) => rule?.action === "deny")
    return denied === undefined ? undefined : `opencode's rule ${denied.text} denies ${name}`
  }
}

const permissionRules = (where: string, value: unknown): ReadonlyArray<Rule> => {
  if (typeof value === "string") return [{ pattern: "*", action: value, text: `${where}: "${value}"` }]
  if (!isFields(value)) return []
  return Object.entries(value).map(([pattern, action]) => {
    // a rule by argument patterns: a call of an MCP tool is asked for as "*"
    const deciding = isFields(action) ? action["*"] : action
    return { pattern, action: deciding, text: `${where}["${pattern}"]: "${String(deciding)}"` }
  }).filter(({ action }) => typeof action === "string")
}

const toolRules = (where: string, value: unknown): ReadonlyArray<Rule> =>
  isFields(value)
    ? Object.entries(value).map(([pattern, on]) => ({
      pattern,
      action: on === false ? "deny" : "allow",
      text: `${where}["${pattern}"]: ${String(on)}`
    }))
    : []
