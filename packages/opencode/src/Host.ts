import type { PluginInput } from "@opencode-ai/plugin"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { CallingContext } from "./Caller.js"

/** opencode's server refused a request (`status` is set) or did not answer it. */
export class HostFailure extends Schema.TaggedError<HostFailure>()("HostFailure", {
  message: Schema.String,
  status: Schema.optional(Schema.Number)
}) {}

/** Which model a session or a message uses. */
export interface ModelChoice {
  readonly providerID: string
  readonly modelID: string
  readonly variant?: string | undefined
}

export interface SessionInfo {
  readonly parentID?: string | undefined
  readonly agent?: string | undefined
  readonly model?: ModelChoice | undefined
}

export interface SessionMessage {
  readonly role: "user" | "assistant"
  readonly agent?: string | undefined
  readonly model?: ModelChoice | undefined
  readonly text: string
}

export interface Prompt {
  readonly text: string
  readonly agent?: string | undefined
  readonly model?: ModelChoice | undefined
}

export interface LogEntry {
  readonly level: "debug" | "info" | "warn" | "error"
  readonly message: string
}

const Session = Schema.Struct({
  parentID: Schema.optional(Schema.NullOr(Schema.String)),
  agent: Schema.optional(Schema.NullOr(Schema.String)),
  model: Schema.optional(Schema.NullOr(Schema.Struct({
    id: Schema.String,
    providerID: Schema.String,
    variant: Schema.optional(Schema.NullOr(Schema.String))
  })))
})

const Model = Schema.Struct({
  providerID: Schema.String,
  modelID: Schema.String,
  variant: Schema.optional(Schema.String)
})

const Part = Schema.Struct({ type: Schema.String, text: Schema.optional(Schema.String) })

const Messages = Schema.Array(Schema.Struct({
  info: Schema.Struct({
    role: Schema.Literal("user", "assistant"),
    agent: Schema.optional(Schema.String),
    model: Schema.optional(Model)
  }),
  parts: Schema.Array(Part)
}))

const Statuses = Schema.Record({ key: Schema.String, value: Schema.Struct({ type: Schema.String }) })
const McpStatuses = Schema.Record({ key: Schema.String, value: Schema.Struct({ status: Schema.String }) })

const RunningPart = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("tool"),
  callID: Schema.String,
  state: Schema.Struct(
    { status: Schema.Literal("running") },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  )
}, Schema.Record({ key: Schema.String, value: Schema.Unknown }))
const isRunningPart = Schema.is(RunningPart)

const Explained = Schema.Struct({ data: Schema.Struct({ message: Schema.String }) })
const Named = Schema.Struct({ name: Schema.String })

/** The part of an error body that a person can read. */
const reasonOf = (error: unknown): string =>
  Schema.is(Explained)(error) ? error.data.message : Schema.is(Named)(error) ? error.name : "no reason given"

interface Reply {
  readonly data?: unknown
  readonly error?: unknown
  readonly response?: { readonly status: number } | undefined
}

/** ms that opencode's own server may take for one request. */
const requestMillis = 15_000

/** messages at the end of a session that are looked at */
const tail = 20

const accepted = (what: string, reply: Reply): Effect.Effect<unknown, HostFailure> =>
  reply.error === undefined
    ? Effect.succeed(reply.data)
    : new HostFailure({
      message: `opencode refused to ${what}: ${reasonOf(reply.error)}`,
      ...(reply.response === undefined ? {} : { status: reply.response.status })
    })

const request = <A, I>(what: string, schema: Schema.Schema<A, I>, send: (signal: AbortSignal) => Promise<Reply>) =>
  Effect.tryPromise({
    try: send,
    catch: () => new HostFailure({ message: `opencode's server did not answer the request to ${what}` })
  }).pipe(
    Effect.timeoutFail({
      duration: requestMillis,
      onTimeout: () => new HostFailure({ message: `opencode took longer than ${requestMillis / 1000} s to ${what}` })
    }),
    Effect.flatMap((reply) => accepted(what, reply)),
    Effect.flatMap((data) =>
      Effect.mapError(
        Schema.decodeUnknown(schema)(data),
        () => new HostFailure({ message: `opencode was asked to ${what}, and its answer has an unknown form` })
      )
    )
  )

/**
 * What the plugin needs of opencode's own server. None of it may be used while the plugin starts: the server waits for
 * the plugin, and would never answer.
 */
export class Host extends Context.Tag("@gcszhn/mcp-sentinel-opencode-plugin/Host")<Host, {
  readonly directory: string
  /** the configuration, every reference in it already expanded by opencode */
  readonly config: Effect.Effect<unknown, HostFailure>
  /** the state of each MCP server: `connected`, `disabled`, `failed` … */
  readonly mcpStatus: Effect.Effect<ReadonlyMap<string, string>, HostFailure>
  readonly session: (id: string) => Effect.Effect<SessionInfo, HostFailure>
  /** the last messages of a session, oldest first */
  readonly messages: (id: string) => Effect.Effect<ReadonlyArray<SessionMessage>, HostFailure>
  readonly busy: (id: string) => Effect.Effect<boolean, HostFailure>
  /** Puts a message into a session and starts a turn; success means that it was accepted, not that it was stored. */
  readonly prompt: (id: string, prompt: Prompt) => Effect.Effect<void, HostFailure>
  readonly log: (entry: LogEntry) => Effect.Effect<void>
  /** Shows a line at a running tool call in opencode's UI; does nothing when the call is not running. */
  readonly showProgress: (call: CallingContext, title: string) => Effect.Effect<void>
}>() {
  static readonly layer = (input: Pick<PluginInput, "client" | "directory">) =>
    Layer.succeed(Host, fromClient(input.client, input.directory))
}

const sessionInfo = ({ agent, model, parentID }: typeof Session.Type): SessionInfo => ({
  parentID: parentID ?? undefined,
  agent: agent ?? undefined,
  model: model ? { providerID: model.providerID, modelID: model.id, variant: model.variant ?? undefined } : undefined
})

const sessionMessage = ({ info, parts }: typeof Messages.Type[number]): SessionMessage => ({
  ...info,
  text: parts.flatMap((part) => part.type === "text" ? [part.text ?? ""] : []).join("\n")
})

const promptBody = ({ agent, model, text }: Prompt) => ({
  parts: [{ type: "text" as const, text }],
  ...(agent === undefined ? {} : { agent }),
  ...(model === undefined ? {} : { model: { providerID: model.providerID, modelID: model.modelID } }),
  ...(model?.variant === undefined ? {} : { variant: model.variant })
})

const fromClient = (client: PluginInput["client"], directory: string): typeof Host.Service => ({
  directory,
  config: request("read its configuration", Schema.Unknown, (signal) => client.config.get({ signal })),
  mcpStatus: request("tell the state of its MCP servers", McpStatuses, (signal) => client.mcp.status({ signal })).pipe(
    Effect.map((all) => new Map(Object.entries(all).map(([name, { status }]) => [name, status])))
  ),
  session: (id) =>
    request("find the session", Session, (signal) => client.session.get({ path: { id }, signal })).pipe(
      Effect.map(sessionInfo)
    ),
  messages: (id) =>
    request(
      "list the session's messages",
      Messages,
      (signal) => client.session.messages({ path: { id }, query: { limit: tail }, signal })
    ).pipe(
      Effect.map((messages) => messages.map(sessionMessage))
    ),
  busy: (id) =>
    request("tell whether the session is busy", Statuses, (signal) => client.session.status({ signal })).pipe(
      Effect.map((all) => all[id] !== undefined && all[id].type !== "idle")
    ),
  prompt: (id, prompt) =>
    request(
      "take the notice",
      Schema.Unknown,
      (signal) => client.session.promptAsync({ path: { id }, body: promptBody(prompt), signal })
    ).pipe(Effect.asVoid),
  log: ({ level, message }) =>
    request(
      "write its log",
      Schema.Unknown,
      (signal) => client.app.log({ body: { service: "mcp-sentinel", level, message }, signal })
    ).pipe(Effect.ignore),
  showProgress: (call, title) => showProgress(client, call, title)
})

/**
 * `ToolContext.metadata` publishes nothing in opencode 1.18, so the stored part of the call is changed. A part that is no
 * longer running is left alone: writing it back would undo its end.
 */
const showProgress = Effect.fnUntraced(function*(client: PluginInput["client"], call: CallingContext, title: string) {
  const path = { id: call.sessionID, messageID: call.messageID }
  const found = yield* request(
    "find the tool call",
    Schema.Struct({ parts: Schema.Array(Schema.Unknown) }),
    (signal) => client.session.message({ path, signal })
  )
  const part = found.parts.find((part) => isRunningPart(part) && part.callID === call.callID)
  if (!isRunningPart(part)) return
  yield* request("show the progress", Schema.Unknown, (signal) =>
    client["_client"].patch({
      url: "/session/{id}/message/{messageID}/part/{partID}",
      path: { ...path, partID: part.id },
      body: { ...part, state: { ...part.state, title } },
      headers: { "content-type": "application/json" },
      signal
    }))
}, Effect.ignore)
