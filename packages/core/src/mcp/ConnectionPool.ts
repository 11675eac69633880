import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import type { JsonObject } from "../Json.js"
import { type Connection, openConnection, type ToolList } from "./Connection.js"
import type { Mishap } from "./Mishap.js"
import type { ServerConfig } from "./ServerConfig.js"
import type { ProcessEvidence } from "./StdioTransport.js"

/** A connection's key. A retired key is never used again, so that a late release cannot touch its successor. */
class Slot extends Data.Class<{ readonly server: string; readonly generation: number }> {}

/** What is remembered of a server beyond its connection. */
interface Memory {
  config: ServerConfig
  generation: number
  everConnected: boolean
  /** a stdio process that had connected was lost since; the next one starts without its memory */
  lostProcess: boolean
  /** how often a stdio process had to be started again */
  restarts: number
  open: { readonly generation: number; readonly connection: Connection } | undefined
  /** keeps the connection of one generation while there are holders */
  kept: { readonly generation: number; readonly scope: Scope.CloseableScope } | undefined
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
  readonly call: (tool: string, args: JsonObject) => Effect.Effect<unknown, PoolFailure>
  readonly tools: Effect.Effect<ToolList, PoolFailure>
  readonly isAlive: Effect.Effect<boolean>
}

export interface PoolOptions {
  /** how long a connection that nobody uses or holds stays open (default 5 minutes) */
  readonly idle?: Duration.DurationInput | undefined
}

/**
 * The sentinel's own connections: one for each server, shared by all callers, opened when first used and closed when
 * idle. A server whose configuration has changed gets a new connection. Everything is closed with the layer's scope.
 */
export class ConnectionPool extends Context.Tag("@gcszhn/mcp-sentinel-core/mcp/ConnectionPool")<ConnectionPool, {
  /** Borrows the server's connection, and opens it where there is none. */
  readonly borrow: (server: ServerConfig) => Effect.Effect<Loan, PoolFailure, Scope.Scope>
  /** The server's complete `tools/list`, kept for each connection until the server says that it has changed. */
  readonly tools: (server: ServerConfig) => Effect.Effect<ToolList, PoolFailure>
  /** What is known of `tools` without waiting or connecting. */
  readonly knownTools: (server: ServerConfig) => Effect.Effect<Option.Option<ToolList>>
  /** Gives a failed connection up: the next `borrow` opens another one. */
  readonly retire: (server: string, generation: number) => Effect.Effect<void>
  /** How often the server's process had to be started again because it was lost (0 for HTTP). */
  readonly restarts: (server: string) => Effect.Effect<number>
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

const unconnected = (config: ServerConfig) => ({
  config,
  everConnected: false,
  lostProcess: false,
  open: undefined
})

const make = Effect.fnUntraced(function*({ idle = Duration.minutes(5) }: PoolOptions) {
  const memories = new Map<string, Memory>()
  const holders = new Map<string, number>()
  const scopes = new Set<Scope.CloseableScope>()

  const connect = Effect.fnUntraced(function*({ generation, server }: Slot) {
    const memory = memories.get(server)
    if (memory === undefined) return yield* Effect.dieMessage(`no configuration of server ${server}`)
    const connection = yield* Effect.mapError(
      openConnection(memory.config),
      (reason) => new PoolFailure({ ...reason, phase: "connect", everConnected: memory.everConnected, generation })
    )
    if (memory.lostProcess) memory.restarts++
    memory.lostProcess = false
    memory.everConnected = true
    memory.open = { generation, connection }
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        if (memory.open?.generation === generation) memory.open = undefined
      })
    )
    return connection
  })

  /** RcMap closes its entries one after the other; servers that do not want to leave must not add up. */
  const apart = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      scopes.add(scope)
      yield* Effect.addFinalizer((exit) =>
        Effect.zipRight(Effect.sync(() => scopes.delete(scope)), Scope.close(scope, exit))
      )
      return yield* Scope.extend(effect, scope)
    })

  const connections = yield* RcMap.make({ lookup: (slot: Slot) => apart(connect(slot)), idleTimeToLive: idle })
  yield* Effect.addFinalizer(() =>
    Effect.forEach([...scopes], (scope) => Scope.close(scope, Exit.void), { concurrency: "unbounded", discard: true })
  )

  const slotOf = (memory: Memory) => new Slot({ server: memory.config.name, generation: memory.generation })

  const letGo = Effect.fnUntraced(function*(memory: Memory) {
    const { kept } = memory
    memory.kept = undefined
    if (kept !== undefined) yield* Scope.close(kept.scope, Exit.void)
  })

  const abandon = Effect.fnUntraced(function*(memory: Memory) {
    const slot = slotOf(memory)
    memory.generation++
    memory.open = undefined
    yield* letGo(memory)
    yield* RcMap.invalidate(connections, slot)
  })

  /** Gives a failed connection up. The process behind it has taken its memory along. */
  const lose = (memory: Memory) =>
    Effect.suspend(() => {
      if (memory.config.endpoint._tag === "stdio" && memory.open !== undefined) memory.lostProcess = true
      return abandon(memory)
    })

  const remember = Effect.fnUntraced(function*(config: ServerConfig) {
    const memory = memories.get(config.name)
    if (memory === undefined) {
      const fresh: Memory = { ...unconnected(config), generation: 0, restarts: 0, kept: undefined }
      memories.set(config.name, fresh)
      return fresh
    }
    if (!sameConfig(memory.config, config)) {
      yield* abandon(memory)
      Object.assign(memory, unconnected(config))
    }
    return memory
  })

  /** While somebody holds the server, its connection has one more user. */
  const keep = Effect.fnUntraced(function*(memory: Memory, slot: Slot) {
    if (!holders.has(slot.server) || memory.kept?.generation === slot.generation) return
    yield* letGo(memory)
    const scope = yield* Scope.make()
    memory.kept = { generation: slot.generation, scope }
    yield* Effect.ignore(Scope.extend(RcMap.get(connections, slot), scope))
  })

  const retire = (server: string, generation: number) =>
    Effect.suspend(() => {
      const memory = memories.get(server)
      return memory?.generation === generation ? lose(memory) : Effect.void
    })

  const borrow = Effect.fnUntraced(function*(config: ServerConfig) {
    const memory = yield* remember(config)
    if (memory.open?.connection.isLost() === true) yield* lose(memory)
    const slot = slotOf(memory)
    const connection = yield* Effect.tapError(
      RcMap.get(connections, slot),
      () => retire(slot.server, slot.generation)
    )
    yield* Effect.uninterruptible(keep(memory, slot))
    const told = <A>(effect: Effect.Effect<A, Mishap>) =>
      Effect.mapError(effect, (mishap) =>
        new PoolFailure({
          mishap,
          phase: "call",
          everConnected: true,
          evidence: connection.evidence(),
          generation: slot.generation
        }))
    const loan: Loan = {
      call: (tool, args) => told(connection.call(tool, args)),
      tools: told(connection.tools),
      isAlive: connection.isAlive
    }
    return loan
  })

  const release = (server: string) =>
    Effect.suspend(() => {
      const left = (holders.get(server) ?? 1) - 1
      if (left > 0) holders.set(server, left)
      else holders.delete(server)
      const memory = memories.get(server)
      return left > 0 || memory === undefined ? Effect.void : letGo(memory)
    })

  return ConnectionPool.of({
    borrow,
    tools: (config) => Effect.scoped(Effect.flatMap(borrow(config), (loan) => loan.tools)),
    knownTools: (config) =>
      Effect.sync(() => {
        const memory = memories.get(config.name)
        if (memory?.open === undefined || !sameConfig(memory.config, config)) return Option.none()
        const { connection } = memory.open
        return connection.isLost() ? Option.none() : connection.knownTools()
      }),
    retire,
    restarts: (server) => Effect.sync(() => memories.get(server)?.restarts ?? 0),
    hold: (server) =>
      Effect.acquireRelease(
        Effect.sync(() => void holders.set(server, (holders.get(server) ?? 0) + 1)),
        () => release(server)
      )
  })
})
