import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { FatalFailure, NotifyFailure, Refused, ToolFailure, TransportFailure } from "./Errors.js"
import type { InvokeFailure } from "./Errors.js"
import { isJsonObject, type JsonObject } from "./Json.js"
import { ConnectionPool } from "./mcp/ConnectionPool.js"
import * as McpInvoker from "./mcp/McpInvoker.js"
import { McpServers, type ServerConfig } from "./mcp/ServerConfig.js"
import { type Notice, Notifier } from "./Notifier.js"
import type { Origin } from "./Origin.js"
import { Sentinel } from "./Sentinel.js"
import { type Limits, Settings } from "./Settings.js"
import { TaskStore } from "./TaskStore.js"
import { ToolInvoker, type ToolTarget } from "./ToolInvoker.js"
import { type Progress, ToolKit, type ToolReply } from "./ToolKit.js"
import { fromCallToolResult, fromJson, fromText, type ToolValue } from "./ToolResult.js"
import { definitions, names, type ToolDefinition } from "./Tools.js"

export type { Notice } from "./Notifier.js"
export type { Origin } from "./Origin.js"
export type { Progress, ToolDefinition, ToolReply } from "./ToolKit.js"

/** What `invoke` and `notify` are told beside their arguments. */
export interface InvokeContext {
  /** aborts when the sentinel is cancelled, times out, or the process ends */
  readonly signal: AbortSignal
  readonly origin: Origin
}

/**
 * Thrown by `invoke` to say what kind of failure it was (SPEC "Failed calls"). Anything else that is thrown counts as
 * `transport`. `retryAfter` is in ms.
 */
export class InvokeError extends Error {
  readonly kind: InvokeFailure["_tag"]
  readonly retryAfter: number | undefined
  constructor(kind: "fatal" | "tool" | "transport", message: string, options: { readonly retryAfter?: number } = {}) {
    super(message)
    this.name = "InvokeError"
    this.kind = kind === "fatal" ? "FatalFailure" : kind === "tool" ? "ToolFailure" : "TransportFailure"
    this.retryAfter = options.retryAfter
  }
}

/** Thrown by `notify` to say whether the notice may have arrived; anything else that is thrown counts as `unknown`. */
export class NotifyError extends Error {
  readonly certainty: NotifyFailure["certainty"]
  constructor(certainty: NotifyFailure["certainty"], message: string) {
    super(message)
    this.name = "NotifyError"
    this.certainty = certainty
  }
}

/** The host calls MCP tools itself. */
export interface InvokerMode {
  /** Calls a tool once and returns its MCP result (`content`, `structuredContent`, `isError`), or a bare JSON value. */
  readonly invoke: (server: string, tool: string, args: JsonObject, context: InvokeContext) => Promise<unknown>
  /** Says, before a task starts, why a target cannot be polled; resolves with nothing when it can. */
  readonly check?: (target: ToolTarget, origin: Origin) => Promise<string | undefined>
}

/** The sentinel connects by itself to the servers that the host names. */
export interface ServersMode {
  /** Read at the first use, and again when an unknown server is asked for. */
  readonly servers: () => Promise<ReadonlyArray<ServerConfig>>
}

export type SentinelHost = (InvokerMode | ServersMode) & {
  /** Tells an agent once that a task has ended. Without it agents collect outcomes with attach. */
  readonly notify?: (notice: Notice, context: { readonly signal: AbortSignal }) => Promise<void>
  /** what the acknowledgement tells the agent to do after poll */
  readonly advice?: string
  /** Takes what goes wrong without an agent being told; without it nothing is logged, since stdout belongs to the host. */
  readonly log?: (level: string, message: string) => void
  /** overrides of the `SENTINEL_` settings */
  readonly settings?: Partial<Limits>
}

export interface CallOptions {
  readonly origin?: Origin
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
  /** ms that the host lets a call block at most */
  readonly maxBlock?: number
}

type Handle = (input: unknown, options?: CallOptions) => Promise<ToolReply>

/** The sentinel for a host that is not written with Effect. No promise of it rejects but after `dispose`. */
export interface PromiseSentinel {
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly call: (name: string, input: unknown, options?: CallOptions) => Promise<ToolReply>
  readonly handlePoll: Handle
  readonly handleStatus: Handle
  readonly handleAttach: Handle
  readonly handleRead: Handle
  /** Ends every wait and every process that was started; resolves when all is gone. */
  readonly dispose: () => Promise<void>
}

const interrupted: ToolReply = { text: "Error: the call was interrupted; the sentinel goes on.", isError: true }

/** Builds the tools over what the host can do. Nothing runs before the first call. */
export const makeSentinel = (host: SentinelHost): PromiseSentinel => {
  const runtime = ManagedRuntime.make(
    ToolKit.layer.pipe(
      Layer.provide(Sentinel.layer),
      Layer.provide([
        TaskStore.layerMemory,
        "invoke" in host ? invokerLayer(host) : serversLayer(host),
        notifierLayer(host)
      ]),
      Layer.provide(Settings.layerOf(host.settings ?? {})),
      Layer.provide(Logger.replace(Logger.defaultLogger, loggerOf(host)))
    )
  )
  const call = async (name: string, input: unknown, options: CallOptions = {}): Promise<ToolReply> => {
    const { maxBlock, onProgress, origin = {}, signal } = options
    const exit = await runtime.runPromiseExit(
      Effect.flatMap(ToolKit, (kit) =>
        kit.call(name, input, {
          origin,
          maxBlock,
          onProgress: onProgress && ((progress) => Effect.sync(() => onProgress(progress)))
        })),
      signal && { signal }
    )
    if (Exit.isSuccess(exit)) return exit.value
    if (Cause.isInterruptedOnly(exit.cause)) return interrupted
    throw Cause.squash(exit.cause)
  }
  const handle = (name: string): Handle => (input, options) => call(name, input, options)
  return {
    tools: definitions(false),
    call,
    handlePoll: handle(names.poll),
    handleStatus: handle(names.status),
    handleAttach: handle(names.attach),
    handleRead: handle(names.read),
    dispose: () => runtime.dispose()
  }
}

const loggerOf = ({ log }: SentinelHost) =>
  Logger.make(({ cause, logLevel, message }) => {
    const causes = Cause.isEmpty(cause) ? [] : [Cause.pretty(cause)]
    log?.(logLevel.label, [...Arr.ensure(message).map(messageOf), ...causes].join(" "))
  })

const messageOf = (thrown: unknown): string => thrown instanceof Error ? thrown.message : String(thrown)

const invokeFailure = ({ server, tool }: ToolTarget, thrown: unknown): InvokeFailure => {
  const where = { server, tool, message: messageOf(thrown) }
  if (!(thrown instanceof InvokeError)) return new TransportFailure(where)
  switch (thrown.kind) {
    case "FatalFailure":
      return new FatalFailure(where)
    case "ToolFailure":
      return new ToolFailure({ ...where, value: fromText(where.message) })
    case "TransportFailure":
      return new TransportFailure({ ...where, retryAfter: thrown.retryAfter })
  }
}

const isToolResult = (result: unknown): result is JsonObject =>
  isJsonObject(result) && (Array.isArray(result["content"]) || "structuredContent" in result)

const valueOf = ({ server, tool }: ToolTarget, result: unknown): Effect.Effect<ToolValue, FatalFailure> =>
  isToolResult(result)
    ? Effect.succeed(fromCallToolResult(result))
    : Effect.try({
      try: () => fromJson(JSON.parse(JSON.stringify(result ?? null))),
      catch: (thrown) =>
        new FatalFailure({ server, tool, message: `The host returned what is no JSON: ${messageOf(thrown)}` })
    })

const invokerLayer = (host: InvokerMode) =>
  Layer.succeed(ToolInvoker, {
    resolve: (target, origin) =>
      Effect.promise(async () => host.check?.(target, origin)).pipe(
        Effect.flatMap((reason) =>
          reason === undefined ? Effect.succeed({ ...target, warnings: [] }) : new Refused({ message: reason })
        )
      ),
    invoke: ({ args, origin, server, tool }) =>
      Effect.tryPromise({
        try: (signal) => host.invoke(server, tool, args, { signal, origin }),
        catch: (thrown) => invokeFailure({ server, tool }, thrown)
      }).pipe(
        Effect.flatMap((result) => Effect.map(valueOf({ server, tool }, result), (value) => ({ result, value }))),
        Effect.flatMap(({ result, value }) =>
          isToolResult(result) && result["isError"] === true
            ? new ToolFailure({ server, tool, message: value.raw, value })
            : Effect.succeed({ value, restarted: false })
        )
      ),
    hold: () => Effect.void
  })

const serversLayer = (host: ServersMode) => {
  const discover = Effect.promise(host.servers).pipe(
    Effect.map((servers) => ({
      servers: servers.map((server) => ({ ...server, source: "the host" })),
      unusable: [],
      problems: []
    })),
    Effect.catchAllDefect((defect) =>
      Effect.succeed({
        servers: [],
        unusable: [],
        problems: [`The host could not name its MCP servers: ${messageOf(defect)}`]
      })
    )
  )
  const catalogue = Layer.effect(
    McpServers,
    Effect.map(Effect.cachedInvalidateWithTTL(discover, "1 hour"), ([cached, invalidate]) => ({
      catalogue: cached,
      refresh: Effect.zipRight(invalidate, cached)
    }))
  )
  return McpInvoker.layer.pipe(Layer.provide([ConnectionPool.layer, catalogue]))
}

const notifierLayer = ({ advice, notify }: SentinelHost) =>
  Layer.succeed(Notifier, {
    accept: () =>
      Effect.succeed(
        notify === undefined
          ? { notifies: false, advice: advice ?? "Nobody will tell you the end: collect it with mcp_sentinel_attach." }
          : { notifies: true, advice: advice ?? "You will be told once when it ends; do not poll." }
      ),
    notify: (notice) =>
      Effect.tryPromise({
        try: async (signal) => notify?.(notice, { signal }),
        catch: (thrown) =>
          new NotifyFailure({
            message: messageOf(thrown),
            certainty: thrown instanceof NotifyError ? thrown.certainty : "unknown"
          })
      })
  })
