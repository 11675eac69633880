import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { FatalFailure, type InvokeFailure, Refused, ToolFailure, TransportFailure } from "../Errors.js"
import type { JsonObject } from "../Json.js"
import type { Origin } from "../Origin.js"
import { type Invocation, type ResolvedTool, type ToolCall, ToolInvoker, type ToolTarget } from "../ToolInvoker.js"
import { matchNames, type NameMatch } from "../ToolNames.js"
import { fromCallToolResult } from "../ToolResult.js"
import type { ToolList } from "./Connection.js"
import { ConnectionPool, type PoolFailure } from "./ConnectionPool.js"
import { type Judgement, judgeMishap, judgeResult, mayMeanUnknownTool } from "./Failures.js"
import { masking } from "./Secrets.js"
import { type Catalogue, HostRules, McpServers, type ServerConfig } from "./ServerConfig.js"
import { type Answer, answerOver, cancelOver, type Failed, invocationOf } from "./TaskCalls.js"
import { knownServers, ruleAgainst, toolNames, unknownServer, unknownTool, warningsFor } from "./Texts.js"

/** ms that `resolve` waits for a list of tools where a name can be read in two ways */
const namingMillis = 3_000
/** characters of the end of a process's stderr that an error shows */
const stderrShown = 700
/** ms for a look at the list of tools after an error that may mean an unknown tool */
const listMillis = 10_000

const make = Effect.gen(function*() {
  const pool = yield* ConnectionPool
  const servers = yield* McpServers
  const rules = yield* HostRules
  const scope = yield* Effect.scope
  /** by the `args` of a task, which are one object for all its calls: how many restarts it has been told of */
  const told = new WeakMap<JsonObject, number>()
  const learnt = new Set<string>()
  /** the configurations that calls were made with, for the case that discovery fails later */
  const lastKnown = new Map<string, ServerConfig>()

  const completeTools = (config: ServerConfig) =>
    Effect.map(pool.knownTools(config), Option.filter((list) => list.complete))

  const match = (target: ToolTarget, catalogue: Catalogue): Effect.Effect<NameMatch> =>
    Effect.map(
      Effect.forEach(catalogue.servers, (config) =>
        Effect.map(completeTools(config), (list) => ({
          name: config.name,
          tools: Option.getOrUndefined(Option.map(list, toolNames))
        }))),
      (named) => matchNames(target, named, rules.publicNames)
    )

  /** The list of tools, where it comes in time. */
  const listWithin = (config: ServerConfig, millis: number): Effect.Effect<Option.Option<ToolList>> =>
    pool.tools(config).pipe(
      Effect.option,
      Effect.disconnect,
      Effect.timeoutOption(millis),
      Effect.map(Option.flatten),
      Effect.map(Option.filter((list) => list.complete))
    )

  const found = Effect.fnUntraced(function*(
    target: ToolTarget,
    match: NameMatch,
    catalogue: Catalogue
  ) {
    switch (match._tag) {
      case "Found":
        return match.target
      case "Ambiguous":
        return yield* new Refused({
          message: `${JSON.stringify(target.server)} / ${JSON.stringify(target.tool)} may mean ${
            match.candidates.map(({ server, tool }) => `server ${JSON.stringify(server)}, tool ${JSON.stringify(tool)}`)
              .join("; or ")
          }. Name one of them exactly.`,
          field: "server"
        })
      case "UnknownServer":
        return yield* new Refused({ message: unknownServer(target.server, catalogue), field: "server" })
      case "UnknownTool":
        return yield* new Refused({ message: unknownTool(match.server, target.tool, match.tools), field: "tool" })
      case "NeedsTools":
        return { server: match.server, tool: match.guess }
    }
  })

  const located = Effect.fnUntraced(function*(target: ToolTarget) {
    let catalogue = yield* servers.catalogue
    let answer = yield* match(target, catalogue)
    if (answer._tag === "UnknownServer") {
      catalogue = yield* servers.refresh
      answer = yield* match(target, catalogue)
    }
    if (answer._tag === "NeedsTools" || answer._tag === "UnknownTool") {
      const { server } = answer
      const config = catalogue.servers.find(({ name }) => name === server)
      const list = config === undefined ? Option.none() : yield* listWithin(config, namingMillis)
      if (Option.isSome(list)) {
        answer = matchNames(
          { server, tool: target.tool },
          [{ name: server, tools: toolNames(list.value) }],
          rules.publicNames
        )
      }
    }
    const { server, tool } = yield* found(target, answer, catalogue)
    const config = catalogue.servers.find(({ name }) => name === server)
    return config === undefined
      ? yield* new Refused({ message: unknownServer(server, catalogue), field: "server" })
      : { config, tool }
  })

  const resolve = Effect.fnUntraced(function*(target: ToolTarget, origin: Origin) {
    const { config, tool } = yield* located(target)
    const against = ruleAgainst(config, tool)
    if (against !== undefined) return yield* new Refused({ message: against, field: "tool" })
    yield* rules.permit({ server: config.name, tool }, origin)
    const listed = Option.flatMap(
      yield* pool.knownTools(config),
      (list) => Option.fromNullable(list.tools.find(({ name }) => name === tool))
    )
    const resolved: ResolvedTool = { server: config.name, tool, warnings: warningsFor(config, tool, listed) }
    return resolved
  })

  /** Judges a failed try, and gives its connection up where it cannot be trusted any more. */
  const judged = Effect.fnUntraced(function*(
    failure: PoolFailure,
    call: ToolCall,
    config: ServerConfig,
    isAlive: Effect.Effect<boolean>
  ) {
    const { evidence, everConnected, generation, mishap, phase } = failure
    const mask = masking(config)
    // before anything is cut: half a secret would not be recognised any more
    const judgement = judgeMishap(mishap._tag === "Http" ? { ...mishap, body: mask(mishap.body) } : mishap, {
      server: call.server,
      tool: call.tool,
      phase,
      everConnected,
      now: yield* Clock.currentTimeMillis,
      noise: evidence.noise,
      stderr: mask(evidence.stderr).slice(-stderrShown)
    })
    // A server that is only slow keeps its process, and with it the jobs in its memory.
    const slow = mishap._tag === "Silent" && phase === "call" && (yield* isAlive)
    if (judgement.reconnect && !slow) yield* pool.retire(config.name, generation)
    const failed: Failed = { _tag: "Failed", judgement: { ...judgement, message: mask(judgement.message) } }
    return failed
  })

  const attempt = (call: ToolCall, config: ServerConfig): Effect.Effect<Answer, Failed> =>
    Effect.catchTag(
      pool.use(config, (loan, signal) =>
        answerOver(call, loan, signal, (failure) => judged(failure, call, config, loan.isAlive))),
      "PoolFailure",
      (failure) =>
        Effect.flatMap(judged(failure, call, config, Effect.succeed(false)), Effect.fail)
    )

  /** An error that may come from a misspelt tool is fatal when the server's list has no such tool. */
  const absent = (call: ToolCall, config: ServerConfig, message: string): Effect.Effect<Option.Option<FatalFailure>> =>
    mayMeanUnknownTool(message)
      ? Effect.map(
        listWithin(config, listMillis),
        Option.flatMap((list) => {
          const names = toolNames(list)
          if (names.includes(call.tool)) return Option.none()
          const text = `${unknownTool(call.server, call.tool, names)} The server said: ${message}`
          return Option.some(new FatalFailure({ server: call.server, tool: call.tool, message: text }))
        })
      )
      : Effect.succeedNone

  const failureOf = Effect.fnUntraced(function*(
    { kind, message, retryAfter }: Pick<Judgement, "kind" | "message" | "retryAfter">,
    call: ToolCall,
    config: ServerConfig,
    result: unknown,
    restarted: boolean
  ) {
    const { server, tool } = call
    if (kind === "transport") return new TransportFailure({ server, tool, message, retryAfter, restarted })
    const unknown = yield* absent(call, config, message)
    if (Option.isSome(unknown)) return unknown.value
    return kind === "fatal"
      ? new FatalFailure({ server, tool, message })
      : new ToolFailure({ server, tool, message, value: fromCallToolResult(result) })
  })

  /** Lists the tools behind the first good call, for refusals and warnings of later submissions. */
  const learn = (config: ServerConfig) =>
    Effect.suspend(() => {
      learnt.add(config.name)
      return Effect.forkIn(Effect.ignore(pool.tools(config)), scope)
    })

  /** Tells each task once of each restart of its server's process. */
  const wasRestarted = ({ args, server }: ToolCall, before: number): boolean => {
    const known = told.get(args) ?? before
    const now = pool.restarts(server)
    told.set(args, now)
    return now > known
  }

  const gone = ({ server, tool }: ToolCall, catalogue: Catalogue) =>
    new FatalFailure({
      server,
      tool,
      message: `Server ${JSON.stringify(server)} is no longer in the configuration. ${knownServers(catalogue)}`
    })

  const onAnswer = (call: ToolCall, config: ServerConfig, before: number) => (answer: Answer) => {
    const restarted = wasRestarted(call, before)
    if (answer._tag === "Task") {
      const view = { ...answer.view, message: masking(config)(answer.view.message) }
      return invocationOf(call, { ...answer, view }, restarted)
    }
    const { result } = answer
    const error = judgeResult(result, call)
    if (error !== undefined) return Effect.flatMap(failureOf(error, call, config, result, restarted), Effect.fail)
    const invocation: Invocation = { value: fromCallToolResult(result), restarted }
    return learnt.has(config.name) ? Effect.succeed(invocation) : Effect.as(learn(config), invocation)
  }

  const onFailed = (call: ToolCall, config: ServerConfig, before: number) => ({ judgement }: Failed) => {
    const asResult = { isError: true, content: [{ type: "text", text: judgement.message }] }
    return Effect.flatMap(failureOf(judgement, call, config, asResult, wasRestarted(call, before)), Effect.fail)
  }

  const withConfig = <A>(
    call: ToolCall,
    f: (config: ServerConfig) => Effect.Effect<A, InvokeFailure>
  ): Effect.Effect<A, InvokeFailure> =>
    Effect.flatMap(servers.catalogue, (catalogue): Effect.Effect<A, InvokeFailure> => {
      const config = catalogue.servers.find(({ name }) => name === call.server) ??
        (catalogue.problems.length > 0 ? lastKnown.get(call.server) : undefined)
      if (config === undefined) return gone(call, catalogue)
      lastKnown.set(call.server, config)
      return f(config)
    })

  const invoke = (call: ToolCall): Effect.Effect<Invocation, InvokeFailure> =>
    withConfig(call, (config) => {
      const before = pool.restarts(call.server)
      return attempt(call, config).pipe(
        Effect.catchIf(
          ({ judgement }) => judgement.repeat && call.once !== true,
          () => attempt(call, config)
        ),
        Effect.matchEffect({
          onFailure: onFailed(call, config, before),
          onSuccess: onAnswer(call, config, before)
        })
      )
    })

  const cancel = (call: ToolCall): Effect.Effect<void, InvokeFailure> =>
    withConfig(call, (config) =>
      Effect.catchAll(
        pool.use(config, (loan, signal) => cancelOver(call, loan, signal)),
        (failure) =>
          Effect.flatMap(
            judged(failure, call, config, Effect.succeed(true)),
            ({ judgement: { message } }) =>
              Effect.fail(new TransportFailure({ server: call.server, tool: call.tool, message }))
          )
      ))

  return ToolInvoker.of({ resolve, invoke, hold: pool.hold, cancel })
})

/** Effect logs the failure of an inner fiber as it is, at debug level: raw, with all that a server has echoed. */
const unlogged = Layer.setUnhandledErrorLogLevel(Option.none())

/**
 * The invoker of harnesses whose servers the sentinel reaches over connections of its own. Names and refusals follow
 * SPEC "mcp_sentinel_poll", failures SPEC "Failed calls".
 */
export const layer: Layer.Layer<ToolInvoker, never, ConnectionPool | McpServers> = Layer.merge(
  Layer.scoped(ToolInvoker, make),
  unlogged
)
