import { Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import { HostRules } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { callerOf } from "./Caller.js"

const sanitize = (name: string): string => name.replaceAll(/[^a-zA-Z0-9_-]/g, "_")

/** The name under which opencode shows an MCP tool to its agent, and under which its permission rules are written. */
export const publicName = ({ server, tool }: ToolTarget): string => `${sanitize(server)}_${sanitize(tool)}`

const Rule = Schema.Struct({ permission: Schema.String, pattern: Schema.String, action: Schema.String })
const Denied = Schema.Struct({ ruleset: Schema.Array(Rule) })
const Corrected = Schema.Struct({ feedback: Schema.String })

const decidingRule = (error: unknown): string | undefined => {
  if (!Schema.is(Denied)(error)) return undefined
  const rule = error.ruleset.findLast(({ action }) => action === "deny")
  return rule === undefined ? undefined : `"${rule.permission}": "deny"`
}

/** Tells a deny rule, a user's no, and a user's no with a reason apart. */
export const refusalOf = (name: string, error: unknown): Refused => {
  const rule = decidingRule(error)
  if (rule !== undefined) {
    return new Refused({
      field: "tool",
      message: `opencode's permission rule ${rule} denies ${name} to this agent, so it cannot be polled either. `
        + "Only the user can change that, under permission in opencode.json."
    })
  }
  const feedback = Schema.is(Corrected)(error) ? ` The user says: ${error.feedback}` : ""
  return new Refused({
    field: "tool",
    message: `The user did not allow ${name} to be called.${feedback} Do not ask again unless the user wants it.`
  })
}

/**
 * opencode's permissions, exactly as opencode asks for a call of its own: allow and deny rules decide, `ask` asks the
 * user, once for all the polls of a task (SPEC "mcp_sentinel_poll", permissions hold).
 */
export const layer = Layer.succeed(HostRules, {
  publicNames: (target) => [publicName(target)],
  permit: (target, origin) => {
    const caller = callerOf(origin)
    if (caller === undefined) return Effect.void
    const permission = publicName(target)
    const metadata = {
      server: target.server,
      tool: target.tool,
      reason: "mcp-sentinel will call it until a condition holds"
    }
    return Effect.tryPromise({
      try: () => caller.ask({ permission, patterns: ["*"], always: ["*"], metadata }),
      catch: (error) => refusalOf(permission, error)
    })
  }
})
