import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { Refused } from "./Errors.js"
import * as Param from "./internal/params.js"
import type { JsonObject } from "./Json.js"

/** A tool as data: every harness maps these to its host. `inputSchema` has a root `type: object` and no `$ref`. */
export interface ToolDefinition {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly openWorldHint: boolean
  }
}

/** How far a blocking attach is; `progress` strictly increases. */
export interface Progress {
  readonly progress: number
  readonly message: string
}

export const names = {
  poll: "mcp_sentinel_poll",
  status: "mcp_sentinel_status",
  attach: "mcp_sentinel_attach",
  read: "mcp_sentinel_read"
} as const

const conditionLanguage = `Conditions are JSON data.
- Leaf: {"path": "status", "is": "eq", "value": "done"}. Without "path" the whole value is meant.
- Operators: eq, ne (deep equality, strict on type); gt, gte, lt, lte (numbers or numeric strings); contains (substring, or member of an array); match (regular expression, linear time: no look-around, no back-references); exists (value true or false).
- Logic: {"and": [...]}, {"or": [...]}, {"not": {...}}.
- Paths: status, tasks[0].exit_code, [0].data.path, items[-1].name, a["key.with.dots"]. No wildcards, filters or slices.
A path that leads nowhere, or a value of another type, means "not yet": polling goes on, and the reason is shown. {"is": "exists", "value": true} without a path holds for any value.
The value of a call: the text as JSON if it is one JSON document, else structuredContent, else the text.`

const pollDescription =
  `Wait for a long-running MCP job without spending tokens: calls a tool of another MCP server in the background, at an interval, until a condition on its result holds, then tells you once. Call it ONCE instead of calling a status tool again and again.
Returns a sentinel ID at once, with what a first look saw. Collect the outcome with mcp_sentinel_attach, mcp_sentinel_status or mcp_sentinel_read.
The sentinel may use a connection of its own: a stdio server then runs a second time, and a job that the other copy keeps in memory only is invisible to it.

${conditionLanguage}`

const pollFields = {
  server: Param.text("name of the MCP server, as in the harness's configuration"),
  tool: Param.text(
    "name of the tool on that server that tells how the job is; each poll calls it again; one that runs as an MCP task is started once, and until judges its result"
  ),
  args: Schema.optional(Param.object("arguments for each call; default {}")),
  interval: Schema.optional(
    Param.millis("ms between the end of one call and the start of the next; default 5000, at least 1000")
  ),
  timeout: Schema.optional(Param.millis("longest total duration in ms; default and 0: no limit; else at least 5000")),
  until: Param.condition("stop as completed when this holds"),
  fail_when: Schema.optional(Param.condition("stop as failed when this holds; looked at before until")),
  max_errors: Schema.optional(
    Param.count("consecutive failed calls at which the sentinel gives up; default 3; 0 = never gives up", 0)
  ),
  start: Schema.optional(
    Param.submission(
      "a tool of the same server that starts the job: called once, before polling, over the connection that the polls use. args may take values from its result: {\"id\": {\"$from\": \"job.id\"}}"
    )
  ),
  select: Schema.optional(
    Param.selection(
      "the part of the value that replies and the notice show: a path, or several as {\"name\": \"path\"}; default: all"
    )
  )
}

const Poll = Schema.Struct(pollFields)

const PollWithNotifier = Schema.Struct({
  ...pollFields,
  notifier_id: Schema.optional(
    Param.text("from mcp_sentinel_set_notifier_commands, or \"auto\": the commands that tell the end; default: none")
  )
})

const Status = Schema.Struct({
  action: Schema.optional(
    Param.oneOf(["status", "list", "cancel"], "status (default) and cancel need an id; list shows the active sentinels")
  ),
  id: Schema.optional(Param.text("sentinel ID"))
})

const Attach = Schema.Struct({
  id: Schema.optional(Param.text("sentinel ID")),
  ids: Schema.optional(Param.names("several sentinel IDs, instead of id")),
  mode: Schema.optional(
    Param.oneOf(["all", "any"], "with ids: return when all have ended (default), or at the first end")
  ),
  timeout: Schema.optional(Param.millis("longest wait in ms; default and 0: until the sentinel ends"))
})

const Read = Schema.Struct({
  id: Param.text("sentinel ID"),
  offset: Schema.optional(
    Param.count("0-based index of the first poll in the whole history; default: the last ones", 0)
  ),
  limit: Schema.optional(Param.count("how many polls; default 5", 1)),
  changes: Schema.optional(Param.flag("only polls whose value differs from the one before; default false"))
})

export interface PollParams extends Schema.Schema.Type<typeof Poll> {
  readonly notifier_id?: string | undefined
}

const plainPoll = Param.read(Poll)
const notifyingPoll = Param.read(PollWithNotifier)

export const readPoll = (notifierId: boolean) => (input: unknown): Either.Either<PollParams, Refused> =>
  notifierId ? notifyingPoll(names.poll, input) : plainPoll(names.poll, input)

export type StatusParams =
  | { readonly action: "list" }
  | { readonly action: "status" | "cancel"; readonly id: string }

const anyStatus = Param.read(Status)

export const readStatus = (input: unknown): Either.Either<StatusParams, Refused> =>
  Either.flatMap(anyStatus(names.status, input), ({ action = "status", id }): Either.Either<StatusParams, Refused> => {
    if (action === "list") return Either.right({ action })
    return id === undefined
      ? Either.left(
        new Refused({ message: `${names.status}: action "${action}" needs "id", the ID of a sentinel`, field: "id" })
      )
      : Either.right({ action, id })
  })

const anyAttach = Param.read(Attach)

export interface AttachParams {
  readonly ids: readonly [string, ...ReadonlyArray<string>]
  readonly mode: "any" | "all"
  readonly timeout?: number | undefined
}

export const readAttach = (input: unknown): Either.Either<AttachParams, Refused> =>
  Either.flatMap(anyAttach(names.attach, input), ({ id, ids, mode = "all", timeout }) => {
    if ((id === undefined) === (ids === undefined)) {
      return Either.left(
        new Refused({ message: `${names.attach}: give "id", or "ids" for several, and not both`, field: "id" })
      )
    }
    return Either.right({ ids: ids ?? [id ?? ""], mode, timeout })
  })

const anyRead = Param.read(Read)
export const readRead = (input: unknown) => anyRead(names.read, input)

const looksOnly = { readOnlyHint: true, destructiveHint: false, openWorldHint: false } as const

/** The four tools as every harness publishes them; `notifierId` adds the parameter that only the CLI has. */
export const definitions = (notifierId: boolean): ReadonlyArray<ToolDefinition> => [
  {
    name: names.poll,
    title: "Wait for a job",
    description: pollDescription,
    inputSchema: notifierId ? Param.published(PollWithNotifier) : Param.published(Poll),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true }
  },
  {
    name: names.status,
    title: "Sentinel status",
    description:
      "Show one sentinel (state, polls, last value, why the condition does not hold yet), list the active ones, or cancel one (with the MCP task that it started).",
    inputSchema: Param.published(Status),
    annotations: looksOnly
  },
  {
    name: names.attach,
    title: "Wait for a sentinel",
    description:
      "Block until a sentinel ends (or several: any, or all), and return the outcome; costs no tokens while it waits. If it says that the sentinel is still running, call it again with the same ID.",
    inputSchema: Param.published(Attach),
    annotations: looksOnly
  },
  {
    name: names.read,
    title: "Read polled values",
    description: "Show the raw values that a sentinel's polls brought, to see why a condition does not match.",
    inputSchema: Param.published(Read),
    annotations: looksOnly
  }
]
