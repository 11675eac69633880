import { assert } from "@effect/vitest"
import { eventually } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import type { Counters } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import { call, lastToolResult, type LlmRequest, on, type Rule, say, sinceUser } from "@gcszhn/mcp-sentinel-testkit/Llm"
import * as Effect from "effect/Effect"
import { jobs, jobScript } from "./jobs.js"

/** How a harness names a server's tool to the model. */
export type ToolName = (server: string, tool: string) => string

/** Codex and Claude Code. */
export const mcpName: ToolName = (server, tool) => `mcp__${server}__${tool}`

/** Looks until each job is done; 0 is never. */
export const looks = { job: 6, byHand: 6, slow: 14, woken: 4, never: 0 }

/** The job server of all waits, as a script and over stdio. */
export const waitedScript = jobScript(looks)
export const waitedJobs = jobs(looks)

/** Looks at a job that were answered after one request of the model and before another. */
const looksBetween = (
  server: Counters,
  tool: keyof typeof looks,
  from: LlmRequest | undefined,
  to: LlmRequest | undefined
): number =>
  server.events().filter((event) =>
    event.type === "answer" && event.tool === tool && event.at > (from?.at ?? 0) && event.at < (to?.at ?? 0)
  ).length

const lastResults = (request: LlmRequest) => sinceUser(request).filter(({ role }) => role === "tool")

/** The sentinel that this turn's tool results name. */
const idIn = (request: LlmRequest): string =>
  /sentinel_[0-9a-f]{32}/.exec(lastResults(request).map(({ text }) => text).join("\n"))?.[0] ?? "no id"

/** The host's own command did not come back in time, as on a machine that has more to do than it can. */
const foundNothingYet = (text: string) => /did not end within|took longer than/.test(text)

/** Requests without those that only repeat a call because the machine was too busy to look for servers. */
export const withoutRepeats = (requests: ReadonlyArray<LlmRequest>): ReadonlyArray<LlmRequest> =>
  requests.filter((request) => !foundNothingYet(lastToolResult(request)))

/** calls of a turn after which it gives up */
const patience = 5

const echo = (request: LlmRequest) => say(`REPLY ${lastToolResult(request)}`)

/**
 * An agent with the harness's servers and, as `sentinel`, the command. It does what it reads: it attaches where the
 * acknowledgement tells it to, and again where attach tells it to.
 */
export const waitingAgent = (name: ToolName): ReadonlyArray<Rule> => {
  const sentinel = (tool: string, input: Readonly<Record<string, unknown>>) => call(name("sentinel", tool), input)
  const poll = (tool: keyof typeof looks, extra: Readonly<Record<string, unknown>> = {}) =>
    sentinel("mcp_sentinel_poll", {
      server: "jobs",
      tool,
      interval: 1000,
      until: { path: "state", is: "eq", value: "done" },
      ...extra
    })
  /** Polls, again where no servers were known yet, and then does what it is told. */
  const wait = (tool: keyof typeof looks) => (request: LlmRequest) => {
    const results = lastResults(request)
    const last = results.at(-1)?.text
    if (last === undefined || (foundNothingYet(last) && results.length < patience)) return poll(tool)
    return /call mcp_sentinel_attach/i.test(last)
      ? sentinel("mcp_sentinel_attach", { id: idIn(request) })
      : echo(request)
  }
  return [
    on(/## Sentinel Complete/, say("WOKEN")),
    on("wait for the job", wait("job")),
    on("wait for the slow one", wait("slow")),
    on("start one that never ends", wait("never")),
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

/** Fails where a process of the harness is left after its end. */
export const leavesNothing = <A, E, R>(processes: Effect.Effect<ReadonlyArray<A>, E, R>, harness: string) =>
  eventually(
    Effect.map(processes, (left) => left.length === 0 || undefined),
    "10 seconds",
    () => `a process outlived ${harness}`
  )

/** A harness with a `waitingAgent`, as far as the bill of a wait is concerned. */
export interface Billed<E, R> {
  /** one turn of the agent; gives what the harness printed */
  readonly run: (prompt: string) => Effect.Effect<string, E, R>
  /** requests of the model so far */
  readonly requests: Effect.Effect<ReadonlyArray<LlmRequest>>
  readonly server: Counters
}

/** The same job waited for and looked at by hand: three requests, none of them while it waits, against one a look. */
export const costsThreeRequests = Effect.fnUntraced(function*<E, R>({ requests, run, server }: Billed<E, R>) {
  const said = yield* run("wait for the job")
  const waited = withoutRepeats(yield* requests)
  assert.strictEqual(waited.length, 3, said)
  const [, second, third] = waited
  assert.include(second === undefined ? "" : lastToolResult(second), "## Sentinel Started")
  const outcome = third === undefined ? "" : lastToolResult(third)
  assert.include(outcome, "**Status:** completed")
  assert.include(outcome, `{"state":"done"}`)
  assert.include(said, "REPLY")
  assert.strictEqual(server.calls("job"), looks.job)
  assert.isAtLeast(looksBetween(server, "job", second, third), 2, "the job went on, and no request came")

  yield* run("look by hand")
  assert.strictEqual(withoutRepeats(yield* requests).length - waited.length, looks.byHand + 1)
  assert.strictEqual(server.calls("byHand"), looks.byHand)
})
