import { call, lastToolResult, type LlmRequest, on, type Rule, say, sinceUser } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { jobs } from "./jobs.js"

/** How a harness names a server's tool to the model. */
export type ToolName = (server: string, tool: string) => string

/** Codex and Claude Code. */
export const mcpName: ToolName = (server, tool) => `mcp__${server}__${tool}`

/** Looks until each job is done; 0 is never. */
export const looks = { job: 6, byHand: 6, woken: 4, never: 0 }

/** The scripted job server of all waits. */
export const waitedJobs = jobs(looks)

const lastResults = (request: LlmRequest) => sinceUser(request).filter(({ role }) => role === "tool")

/** The sentinel that this turn's first tool result names. */
const idIn = (request: LlmRequest): string =>
  /sentinel_[0-9a-f]{32}/.exec(lastResults(request)[0]?.text ?? "")?.[0] ?? "no id"

const echo = (request: LlmRequest) => say(`REPLY ${lastToolResult(request)}`)

/**
 * An agent with the harness's servers and, as `sentinel`, the command. It does what it reads: it attaches where the
 * acknowledgement tells it to, and again where attach tells it to.
 */
export const waitingAgent = (name: ToolName, server = "jobs"): ReadonlyArray<Rule> => {
  const sentinel = (tool: string, input: Readonly<Record<string, unknown>>) => call(name("sentinel", tool), input)
  const poll = (tool: keyof typeof looks, extra: Readonly<Record<string, unknown>> = {}) =>
    sentinel("mcp_sentinel_poll", {
      server,
      tool,
      interval: 1000,
      until: { path: "state", is: "eq", value: "done" },
      ...extra
    })
  const advised = (request: LlmRequest) =>
    /call mcp_sentinel_attach|attach again/i.test(lastToolResult(request))
      ? sentinel("mcp_sentinel_attach", { id: idIn(request) })
      : echo(request)
  return [
    on(/## Sentinel Complete/, say("WOKEN")),
    on("wait for the job", poll("job"), advised),
    on("start one that never ends", poll("never"), advised),
    on("let me be woken", poll("woken", { notifier_id: "auto" }), echo),
    on(
      "tell my session",
      poll("never"),
      sentinel("mcp_sentinel_status", { action: "list" }),
      (request) => sentinel("mcp_sentinel_set_notifier_commands", { commands: [`echo ${idIn(request)} {}`] }),
      echo
    ),
    on("look by hand", (request) =>
      lastToolResult(request).includes(`"done"`) && lastResults(request).length > 0
        ? say("BY HAND")
        : call(name("jobs", "byHand")))
  ]
}
