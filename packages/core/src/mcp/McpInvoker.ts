import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { FatalFailure, Refused, ToolFailure, TransportFailure } from "../Errors.js"
import type { Origin } from "../Origin.js"
import { type Invocation, type ResolvedTool, type ToolCall, ToolInvoker, type ToolTarget } from "../ToolInvoker.js"
import { matchNames, type NameMatch } from "../ToolNames.js"
import { fromCallToolResult } from "../ToolResult.js"
import type { ToolList } from "./Connection.js"
import { ConnectionPool, type Loan, type PoolFailure } from "./ConnectionPool.js"
import { type Judgement, judgeMishap, judgeResult, mayMeanUnknownTool } from "./Failures.js"
import { masking } from "./Secrets.js"
import { type Catalogue, HostRules, McpServers, type ServerConfig } from "./ServerConfig.js"
import { knownServers, ruleAgainst, toolNames, unknownServer, unknownTool, warningsFor } from "./Texts.js"

/** ms that `resolve` waits for a list of tools where a name can be read in two ways */
const namingMillis = 3_000
/** ms for a look at the list of tools after an error that may mean an unknown tool */
const listMillis = 10_000

/** One try of a call that brought no result, already judged. */
interface Failed {
  readonly judgement: Judgement
}

const restartKey = ({ args, origin, tool }: ToolCall) => JSON.stringify([origin.session, tool, args])

const make = Effect.gen(function*() {
  const pool = yield* ConnectionPool
  const servers = yield* McpServers
  const rules = yield* HostRules
  const scope = yield* Effect.scope
  /** for each held server and each call made on it: how many restarts that call has been told of */
  const told = new Map<string, { holders: number; readonly restarts: Map<string, number> }>()
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
    const judgement = judgeMishap(mishap, {
      server: call.server,
      tool: call.tool,
      phase,
      everConnected,
      now: yield* Clock.currentTimeMillis,
      noise: evidence.noise,
      stderr: evidence.stderr
    })
    // A server that is only slow keeps its process, and with it the jobs in its memory.
    const slow = mishap._tag === "Silent" && phase === "call" && (yield* isAlive)
    if (judgement.reconnect && !slow) yield* pool.retire(config.name, generation)
    const failed: Failed = { judgement: { ...judgement, message: masking(config)(judgement.message) } }
    return failed
  })

  const callOver = (loan: Loan, call: ToolCall, config: ServerConfig) =>
    Effect.catchAll(
      loan.call(call.tool, call.args),
      (failure) => Effect.flatMap(judged(failure, call, config, loan.isAlive), Effect.fail)
    )

  const attempt = (call: ToolCall, config: ServerConfig): Effect.Effect<unknown, Failed> =>
    pool.borrow(config).pipe(
      Effect.catchAll((failure) => Effect.flatMap(judged(failure, call, config, Effect.succeed(false)), Effect.fail)),
      Effect.flatMap((loan) => callOver(loan, call, config)),
      Effect.scoped
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
      if (learnt.has(config.name)) return Effect.void
      learnt.add(config.name)
      return Effect.forkIn(Effect.ignore(pool.tools(config)), scope)
    })

  /** Tells each call once of each restart of its server's process. */
  const restartsTold = Effect.fnUntraced(function*(call: ToolCall) {
    const before = told.get(call.server)?.restarts.get(restartKey(call)) ?? (yield* pool.restarts(call.server))
    return Effect.map(pool.restarts(call.server), (now) => {
      told.get(call.server)?.restarts.set(restartKey(call), now)
      return now > before
    })
  })

  const invoke = Effect.fnUntraced(function*(call: ToolCall) {
    const catalogue = yield* servers.catalogue
    const config = catalogue.servers.find(({ name }) => name === call.server) ??
      (catalogue.problems.length > 0 ? lastKnown.get(call.server) : undefined)
    if (config === undefined) {
      return yield* new FatalFailure({
        server: call.server,
        tool: call.tool,
        message: `Server ${JSON.stringify(call.server)} is no longer in the configuration. ${knownServers(catalogue)}`
      })
    }
    lastKnown.set(call.server, config)
    const wasRestarted = yield* restartsTold(call)
    const answer = yield* Effect.either(
      Effect.catchIf(attempt(call, config), ({ judgement }) => judgement.repeat && call.once !== true, () => attempt(call, config))
    )
    const restarted = yield* wasRestarted
    if (answer._tag === "Left") {
      const { judgement } = answer.left
      const asResult = { isError: true, content: [{ type: "text", text: judgement.message }] }
      return yield* Effect.flatMap(failureOf(judgement, call, config, asResult, restarted), Effect.fail)
    }
    const error = judgeResult(answer.right, call)
    if (error !== undefined) {
      return yield* Effect.flatMap(failureOf(error, call, config, answer.right, restarted), Effect.fail)
    }
    yield* learn(config)
    const invocation: Invocation = { value: fromCallToolResult(answer.right), restarted }
    return invocation
  })

  const remembering = (server: string): Effect.Effect<void, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const known = told.get(server)
        if (known === undefined) told.set(server, { holders: 1, restarts: new Map() })
        else known.holders++
      }),
      () =>
        Effect.sync(() => {
          const known = told.get(server)
          if (known !== undefined && --known.holders === 0) told.delete(server)
        })
    )

  return ToolInvoker.of({
    resolve,
    invoke,
    hold: (server) => Effect.zipRight(remembering(server), pool.hold(server))
  })
})

/**
 * The invoker of harnesses whose servers the sentinel reaches over connections of its own. Names and refusals follow
 * SPEC "mcp_sentinel_poll", failures SPEC "Failed calls".
 */
export const layer: Layer.Layer<ToolInvoker, never, ConnectionPool | McpServers> = Layer.scoped(ToolInvoker, make)
