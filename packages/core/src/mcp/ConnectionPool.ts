import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { JsonObject } from "../Json.js"
import { type Connection, openConnection, type ToolList } from "./Connection.js"
import type { Mishap } from "./Mishap.js"
import type { ServerConfig } from "./ServerConfig.js"
import type { ProcessEvidence } from "./StdioTransport.js"
import type { TaskNews } from "./TaskNews.js"

/** One connection and its users. It ends with its last user once it is retired, or when it was idle for long. */
interface Shared {
  readonly generation: number
  readonly scope: Scope.CloseableScope
  readonly opened: Deferred.Deferred<Loan, PoolFailure>
  /** what `opened` holds, for those who need not wait */
  open: { readonly connection: Connection; readonly loan: Loan } | undefined
  users: number
  retired: boolean
}

/** What is remembered of a server beyond its connection. */
interface Memory {
  config: ServerConfig
  /** of the connection that is there, or of the next one */
  generation: number
  everConnected: boolean
  /** a stdio process that had connected was lost since; the next one starts without its memory */
  lostProcess: boolean
  /** how often a stdio process had to be started again */
  restarts: number
  shared: Shared | undefined
}

/** A failure of a connection or a call, with all that its judgement needs. */
export class PoolFailure extends Data.TaggedError("PoolFailure")<{
  readonly mishap: Mishap
  readonly phase: "connect" | "call"
  readonly everConnected: boolean
  readonly evidence: ProcessEvidence
  /** for `retire`: the connection that failed */
  readonly generation: number
}> {}

/** A connection on loan, for as long as the scope lasts. */
export interface Loan {
  readonly call: (tool: string, args: JsonObject, signal: AbortSignal) => Effect.Effect<unknown, PoolFailure>
  readonly request: (method: string, params: JsonObject, signal: AbortSignal) => Effect.Effect<unknown, PoolFailure>
  readonly tools: Effect.Effect<ToolList, PoolFailure>
  readonly knownTools: () => Option.Option<ToolList>
  readonly offersTasks: boolean
  readonly taskNews: TaskNews
  readonly isAlive: Effect.Effect<boolean>
}

type Borrower<A, E> = (loan: Loan, signal: AbortSignal) => Effect.Effect<A, E>

export interface PoolOptions {
  /** how long a connection that nobody uses or holds stays open (default 5 minutes) */
  readonly idle?: Duration.DurationInput | undefined
}

/**
 * The sentinel's own connections: one for each server, shared by all callers, opened when first used and closed when
 * idle. A server whose configuration has changed gets a new connection. Everything is closed with the layer's scope.
 */
export class ConnectionPool extends Context.Tag("@gcszhn/mcp-sentinel-core/mcp/ConnectionPool")<ConnectionPool, {
  /** Lends the server's connection to `f`, and opens it where there is none. Interruption aborts the signal. */
  readonly use: <A, E>(
    server: ServerConfig,
    f: (loan: Loan, signal: AbortSignal) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | PoolFailure>
  /** The server's complete `tools/list`, kept for each connection until the server says that it has changed. */
  readonly tools: (server: ServerConfig) => Effect.Effect<ToolList, PoolFailure>
  /** What is known of `tools` without waiting or connecting. */
  readonly knownTools: (server: ServerConfig) => Effect.Effect<Option.Option<ToolList>>
  /** Gives a failed connection up: the next `use` opens another one. */
  readonly retire: (server: string, generation: number) => Effect.Effect<void>
  /** How often the server's process had to be started again because it was lost (0 for HTTP). */
  readonly restarts: (server: string) => number
  /** Keeps the server's connection, once it is open, from being closed as idle. */
  readonly hold: (server: string) => Effect.Effect<void, never, Scope.Scope>
}>() {
  static readonly layerWith = (options: PoolOptions) => Layer.suspend(() => Layer.scoped(ConnectionPool, make(options)))

  static readonly layer = ConnectionPool.layerWith({})
}

const sorted = (record: Readonly<Record<string, string>>) => Object.entries(record).toSorted()

/** What a connection depends on; rules about tools may change without a new one. */
const keyOf = ({ callTimeout, endpoint, startupTimeout }: ServerConfig): string =>
  JSON.stringify(
    endpoint._tag === "stdio"
      ? [callTimeout, startupTimeout, endpoint.command, endpoint.args, endpoint.cwd, sorted(endpoint.env)]
      : [callTimeout, startupTimeout, endpoint.url, endpoint.transport, sorted(endpoint.headers)]
  )

const sameConfig = (one: ServerConfig, other: ServerConfig) => one === other || keyOf(one) === keyOf(other)

const make = Effect.fnUntraced(function*({ idle = Duration.minutes(5) }: PoolOptions) {
  const memories = new Map<string, Memory>()
  const holders = new Map<string, number>()
  const scopes = new Set<Scope.CloseableScope>()
  let closed = false
  const idles = yield* FiberMap.make<string>()
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return Effect.forEach([...scopes], close, { concurrency: "unbounded", discard: true })
    })
  )

  const close = (scope: Scope.CloseableScope) =>
    Effect.zipRight(Effect.sync(() => scopes.delete(scope)), Scope.close(scope, Exit.void))

  /** Makes a connection the server's past: the next user opens another one. */
  const abandon = (memory: Memory) =>
    Effect.suspend(() => {
      const { shared } = memory
      memory.generation++
      memory.shared = undefined
      if (shared === undefined) return Effect.void
      shared.retired = true
      return shared.users === 0 ? close(shared.scope) : Effect.void
    })

  /** Gives a failed connection up. The process behind it has taken its memory along. */
  const lose = (memory: Memory) =>
    Effect.suspend(() => {
      if (memory.config.endpoint._tag === "stdio" && memory.shared?.open !== undefined) memory.lostProcess = true
      return abandon(memory)
    })

  const retire = (server: string, generation: number) =>
    Effect.suspend(() => {
      const memory = memories.get(server)
      return memory?.generation === generation ? lose(memory) : Effect.void
    })

  const remember = (config: ServerConfig): Memory => {
    const known = memories.get(config.name)
    if (known !== undefined) return known
    const fresh: Memory = {
      config,
      generation: 0,
      everConnected: false,
      lostProcess: false,
      restarts: 0,
      shared: undefined
    }
    memories.set(config.name, fresh)
    return fresh
  }

  const loanOf = (connection: Connection, generation: number): Loan => {
    const told = <A>(effect: Effect.Effect<A, Mishap>) =>
      Effect.mapError(
        effect,
        (mishap) =>
          new PoolFailure({ mishap, phase: "call", everConnected: true, evidence: connection.evidence(), generation })
      )
    return {
      call: (tool, args, signal) => told(connection.call(tool, args, signal)),
      request: (method, params, signal) => told(connection.request(method, params, signal)),
      tools: told(connection.tools),
      knownTools: connection.knownTools,
      offersTasks: connection.offersTasks,
      taskNews: connection.taskNews,
      isAlive: connection.isAlive
    }
  }

  /** Opens the connection, and tells everybody who waits for it. A failure is told once: nothing of it is kept. */
  const connect = (memory: Memory, shared: Shared) => {
    const { generation, opened, scope } = shared
    return openConnection(memory.config).pipe(
      Scope.extend(scope),
      Effect.mapBoth({
        onFailure: (reason) =>
          new PoolFailure({ ...reason, phase: "connect", everConnected: memory.everConnected, generation }),
        onSuccess: (connection) => {
          if (memory.lostProcess) memory.restarts++
          memory.lostProcess = false
          memory.everConnected = true
          const loan = loanOf(connection, generation)
          shared.open = { connection, loan }
          return loan
        }
      }),
      Effect.tapError(() => retire(memory.config.name, generation)),
      Effect.intoDeferred(opened),
      Effect.forkIn(scope)
    )
  }

  /** The server's connection; whoever finds none begins to open one, and takes no turn between the look and that. */
  const obtain = Effect.fnUntraced(function*(memory: Memory) {
    const scope = yield* Scope.make()
    if (closed) return yield* Effect.interrupt
    if (memory.shared !== undefined) return memory.shared
    const { generation } = memory
    const opened = Deferred.unsafeMake<Loan, PoolFailure>(FiberId.none)
    const shared: Shared = { generation, scope, opened, open: undefined, users: 0, retired: false }
    memory.shared = shared
    scopes.add(scope)
    yield* connect(memory, shared)
    return shared
  })

  const mayGo = (server: string, shared: Shared) => shared.users === 0 && !holders.has(server)

  /** Closes a connection that nobody uses or holds after a while. */
  const rest = (server: string, shared: Shared) =>
    FiberMap.run(
      idles,
      server,
      Effect.delay(
        Effect.suspend(() => {
          const memory = memories.get(server)
          return memory?.shared === shared && mayGo(server, shared) ? abandon(memory) : Effect.void
        }),
        idle
      )
    )

  /** Counts a user out; what is left to do, if anything. */
  const giveBack = (server: string, shared: Shared): Effect.Effect<unknown> | undefined => {
    shared.users--
    if (shared.users > 0) return undefined
    if (shared.retired) return close(shared.scope)
    return holders.has(server) ? undefined : rest(server, shared)
  }

  /** `acquireUseRelease`, made for a release that is a count in nearly all cases. */
  const lend = <A, E>(server: string, obtained: Effect.Effect<Shared>, f: Borrower<A, E>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(obtained, (shared) => {
        shared.users++
        const controller = new AbortController()
        const used: Effect.Effect<A, E | PoolFailure> = shared.open === undefined
          ? Effect.flatMap(Deferred.await(shared.opened), (loan) => f(loan, controller.signal))
          : f(shared.open.loan, controller.signal)
        return Effect.flatMap(Effect.exit(restore(used)), (exit) => {
          if (Exit.isInterrupted(exit)) controller.abort()
          const left = giveBack(server, shared)
          return left === undefined ? exit : Effect.zipRight(left, exit)
        })
      })
    )

  const use = <A, E>(config: ServerConfig, f: Borrower<A, E>) =>
    Effect.suspend((): Effect.Effect<A, E | PoolFailure> => {
      const memory = remember(config)
      const { shared } = memory
      const lost = shared?.open?.connection.isLost() === true
      const changed = memory.config !== config && !sameConfig(memory.config, config)
      if (shared !== undefined && !lost && !changed) {
        memory.config = config
        return lend(config.name, Effect.succeed(shared), f)
      }
      const renewed = lost ? lose(memory) : changed ? abandon(memory) : Effect.void
      if (changed) Object.assign(memory, { config, everConnected: false, lostProcess: false })
      return Effect.zipRight(renewed, lend(config.name, obtain(memory), f))
    })

  const release = (server: string) =>
    Effect.suspend((): Effect.Effect<unknown> => {
      const left = (holders.get(server) ?? 1) - 1
      if (left > 0) {
        holders.set(server, left)
        return Effect.void
      }
      holders.delete(server)
      const shared = memories.get(server)?.shared
      return shared === undefined || !mayGo(server, shared) ? Effect.void : rest(server, shared)
    })

  return ConnectionPool.of({
    use,
    tools: (config) => use(config, (loan) => loan.tools),
    knownTools: (config) =>
      Effect.sync(() => {
        const memory = memories.get(config.name)
        const connection = memory?.shared?.open?.connection
        if (memory === undefined || connection === undefined || !sameConfig(memory.config, config)) return Option.none()
        return connection.isLost() ? Option.none() : connection.knownTools()
      }),
    retire,
    restarts: (server) => memories.get(server)?.restarts ?? 0,
    hold: (server) =>
      Effect.acquireRelease(
        Effect.sync(() => void holders.set(server, (holders.get(server) ?? 0) + 1)),
        () => release(server)
      )
  })
})
