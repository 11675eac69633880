import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { isJsonObject, type JsonObject } from "../Json.js"
import { version } from "../version.js"
import { Mishap, mishapOf } from "./Mishap.js"
import type { HttpServer, ServerConfig, StdioServer } from "./ServerConfig.js"
import type { ProcessEvidence } from "./StdioTransport.js"
import { listenForTasks, type TaskNews } from "./TaskNews.js"

/** A tool as its server lists it. */
export interface ListedTool {
  readonly name: string
  readonly destructive: boolean | undefined
  readonly readOnly: boolean | undefined
  /** whether the tool runs as a task of MCP 2025-11-25, on a server that offers them */
  readonly taskSupport: "required" | "optional" | undefined
}

/** A server's tools; not complete when its pages did not come to an end. */
export interface ToolList {
  readonly tools: ReadonlyArray<ListedTool>
  readonly complete: boolean
}

/** An initialised MCP session. */
export interface Connection {
  /** Calls a tool and gives the result as it came, unvalidated. Aborting sends `notifications/cancelled`. */
  readonly call: (tool: string, args: JsonObject, signal: AbortSignal) => Effect.Effect<unknown, Mishap>
  /** Any other request, as it stands. */
  readonly request: (method: string, params: JsonObject, signal: AbortSignal) => Effect.Effect<unknown, Mishap>
  /** the server runs tool calls as tasks (MCP 2025-11-25) */
  readonly offersTasks: boolean
  readonly taskNews: TaskNews
  /** All pages of `tools/list`; kept until the server says that they have changed, where it announces that it will. */
  readonly tools: Effect.Effect<ToolList, Mishap>
  /** What `tools` would give, if it is there already. */
  readonly knownTools: () => Option.Option<ToolList>
  /** the session has ended; every further call would fail */
  readonly isLost: () => boolean
  /** Whether the server still answers a ping, within 5 s. */
  readonly isAlive: Effect.Effect<boolean>
  readonly evidence: () => ProcessEvidence
  /** Ends the session, and the process with everything it started; bounded, and done once. */
  readonly close: Effect.Effect<void>
}

/** How a transport is opened and ended. */
interface Link {
  readonly transport: Transport
  readonly evidence: () => ProcessEvidence
  /** the goodbye that a transport's own close does not say; bounded in time */
  readonly goodbye: () => Promise<unknown>
  /** gives up what can no longer be answered, on an error that the SDK only reports */
  readonly onError: (error: Error) => void
}

const defaultCallTimeout = 60_000
const defaultStartupTimeout = 30_000
const pingTimeout = 5_000
const exitGrace = 300
const mostPages = 1_000

const clientInfo = { name: "mcp-sentinel", version }

const noEvidence: ProcessEvidence = { noise: 0, stderr: "", ended: undefined }

const stdioLink = async (server: StdioServer): Promise<Link> => {
  const { StdioTransport } = await import("./StdioTransport.js")
  const transport = new StdioTransport(server)
  return { transport, evidence: () => transport.evidence, goodbye: async () => {}, onError: () => {} }
}

const streamableLink = async (server: HttpServer): Promise<Link> => {
  const { StreamableTransport } = await import("./HttpTransport.js")
  const transport = new StreamableTransport(server)
  return {
    transport,
    evidence: () => noEvidence,
    goodbye: () => transport.terminateSession(),
    onError: () => {}
  }
}

const sseLink = async (server: HttpServer): Promise<Link> => {
  const { isSseError, SseTransport } = await import("./HttpTransport.js")
  const transport = new SseTransport(server)
  return {
    transport,
    evidence: () => noEvidence,
    goodbye: async () => {},
    onError: (error) => {
      // A stream that comes again belongs to a new session, which nobody has initialised.
      if (isSseError(error)) void transport.close()
    }
  }
}

const spawnMishap = (server: StdioServer, error: unknown): Mishap =>
  error instanceof Error && "syscall" in error && "code" in error && String(error.syscall).startsWith("spawn")
    ? Mishap.SpawnFailed({ command: server.command, code: String(error.code), cwd: server.cwd })
    : mishapOf(error)

/** A lost pipe or connection is told by how its process ended, as soon as that is known. */
const explained = Effect.fnUntraced(function*(mishap: Mishap, config: ServerConfig, evidence: () => ProcessEvidence) {
  if (config.endpoint._tag === "http" || (mishap._tag !== "Ended" && mishap._tag !== "Network")) return mishap
  for (let waited = 0; evidence().ended === undefined && waited < exitGrace; waited += 20) yield* Effect.sleep(20)
  return Mishap.Ended({ how: evidence().ended ?? (mishap._tag === "Ended" ? mishap.how : mishap.message) })
})

/** A failed connection attempt, with what its process said. */
export interface ConnectMishap {
  readonly mishap: Mishap
  readonly evidence: ProcessEvidence
}

const openLink = Effect.fnUntraced(function*(config: ServerConfig, makeLink: () => Promise<Link>) {
  const { anything, Client, ToolListChangedNotificationSchema } = yield* Effect.promise(() => import("./Sdk.js"))
  const link = yield* Effect.promise(makeLink)
  const client = new Client(clientInfo, { capabilities: {} })
  const timeout = config.startupTimeout ?? defaultStartupTimeout
  let lost = false
  client.onclose = () => {
    lost = true
  }
  client.onerror = link.onError
  const taskNews = listenForTasks(client)
  const close = yield* Effect.cached(closing(client, link, () => lost))
  yield* Effect.addFinalizer(() => close)

  const fail = (mishap: Mishap) =>
    Effect.flatMap(
      explained(mishap, config, link.evidence),
      (mishap): Effect.Effect<never, ConnectMishap> => Effect.fail({ mishap, evidence: link.evidence() })
    )

  yield* Effect.tryPromise({
    try: (signal) => client.connect(link.transport, { timeout, signal }),
    catch: (error) => config.endpoint._tag === "stdio" ? spawnMishap(config.endpoint, error) : mishapOf(error)
  }).pipe(
    Effect.disconnect,
    Effect.timeoutFail({ duration: timeout + 100, onTimeout: () => Mishap.Silent({ millis: timeout }) }),
    Effect.catchAll(fail)
  )

  if (client.getServerVersion()?.name === clientInfo.name) return yield* fail(Mishap.Self())

  const request = (method: string, params: JsonObject, signal: AbortSignal) =>
    Effect.async<unknown, Mishap>((resume) => {
      client.request({ method, params: { ...params } }, anything, {
        signal,
        timeout: config.callTimeout ?? defaultCallTimeout,
        resetTimeoutOnProgress: true,
        // the SDK would keep a task's listener for good
        ...("task" in params ? {} : { onprogress: () => {} })
      }).then((result) => resume(Effect.succeed(result)), (error) => resume(Effect.fail(mishapOf(error))))
    }).pipe(Effect.catchAll((mishap) => Effect.flatMap(explained(mishap, config, link.evidence), Effect.fail)))

  const capabilities = client.getServerCapabilities()
  const announces = capabilities?.tools?.listChanged === true
  const offersTasks = capabilities?.tasks?.requests?.tools?.call !== undefined
  const page = (params: JsonObject) => aborting((signal) => request("tools/list", params, signal))
  const list = yield* makeToolList({ announces, offersTasks, page })
  client.setNotificationHandler(ToolListChangedNotificationSchema, list.forget)

  const connection: Connection = {
    call: (name, args, signal) => request("tools/call", { name, arguments: args }, signal),
    request,
    offersTasks,
    taskNews,
    tools: list.tools,
    knownTools: list.known,
    isLost: () => lost,
    isAlive: Effect.promise((signal) => client.ping({ signal, timeout: pingTimeout }).then(() => true, () => false)),
    evidence: link.evidence,
    close
  }
  return connection
})

/** Aborts a signal when the effect that it is for is interrupted. */
const aborting = <A, E>(effect: (signal: AbortSignal) => Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    const controller = new AbortController()
    return Effect.onInterrupt(effect(controller.signal), () => Effect.sync(() => controller.abort()))
  })

const closing = (client: Client, link: Link, isLost: () => boolean) =>
  Effect.promise(async () => {
    if (!isLost()) await link.goodbye().catch(() => {})
    await client.close().catch(() => {})
    await link.transport.close().catch(() => {})
  })

const taskSupportOf = ({ execution }: JsonObject): ListedTool["taskSupport"] => {
  const support = isJsonObject(execution) ? execution["taskSupport"] : undefined
  return support === "required" || support === "optional" ? support : undefined
}

const listedTools = (page: unknown, offersTasks: boolean): ReadonlyArray<ListedTool> => {
  const tools = isJsonObject(page) ? page["tools"] : undefined
  if (!Array.isArray(tools)) return []
  return tools.flatMap((tool: unknown) => {
    if (!isJsonObject(tool) || typeof tool["name"] !== "string") return []
    const hints = isJsonObject(tool["annotations"]) ? tool["annotations"] : {}
    const hint = (name: string) => typeof hints[name] === "boolean" ? hints[name] : undefined
    return [{
      name: tool["name"],
      destructive: hint("destructiveHint"),
      readOnly: hint("readOnlyHint"),
      taskSupport: offersTasks ? taskSupportOf(tool) : undefined
    }]
  })
}

/** Collects all pages once; a cursor that was there before ends the list as incomplete. */
const makeToolList = Effect.fnUntraced(function*({ announces, offersTasks, page }: {
  readonly announces: boolean
  readonly offersTasks: boolean
  readonly page: (params: JsonObject) => Effect.Effect<unknown, Mishap>
}) {
  const oneAtATime = yield* Effect.makeSemaphore(1)
  let known: ToolList | undefined
  let changes = 0

  const collect = Effect.gen(function*() {
    const tools: Array<ListedTool> = []
    const cursors = new Set<string>()
    let cursor: string | undefined
    do {
      const answer = yield* page(cursor === undefined ? {} : { cursor })
      tools.push(...listedTools(answer, offersTasks))
      const next = isJsonObject(answer) ? answer["nextCursor"] : undefined
      cursor = typeof next === "string" ? next : undefined
      if (cursor !== undefined && (cursors.has(cursor) || cursors.size >= mostPages)) return { tools, complete: false }
      if (cursor !== undefined) cursors.add(cursor)
    } while (cursor !== undefined)
    return { tools, complete: true }
  })

  const refresh = Effect.gen(function*() {
    if (announces && known !== undefined) return known
    const before = changes
    const list: ToolList = yield* collect
    if (before === changes) known = list
    return list
  })

  return {
    tools: oneAtATime.withPermits(1)(refresh),
    known: () => Option.fromNullable(known),
    forget: () => {
      changes++
      known = undefined
    }
  }
})

/** MCP 2025-11-25, backwards compatibility: these answers to the first POST may come from a server of the older transport. */
const maySpeakSse = ({ mishap }: ConnectMishap) => mishap._tag === "Http" && [400, 404, 405].includes(mishap.status)

/** Connects and initialises; the session ends with the scope. Fails within the server's `startupTimeout`. */
export const openConnection = (
  config: ServerConfig
): Effect.Effect<Connection, ConnectMishap, Scope.Scope> => {
  const { endpoint } = config
  if (endpoint._tag === "stdio") return openLink(config, () => stdioLink(endpoint))
  if (endpoint.transport === "sse") return openLink(config, () => sseLink(endpoint))
  const streamable = openLink(config, () => streamableLink(endpoint))
  if (endpoint.transport === "http") return streamable
  return Effect.catchIf(
    streamable,
    maySpeakSse,
    (first) => Effect.mapError(openLink(config, () => sseLink(endpoint)), () => first)
  )
}
