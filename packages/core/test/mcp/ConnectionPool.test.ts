import { assert, it } from "@effect/vitest"
import { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import type { ServerConfig } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import { httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import { assertNoOrphans, done, eventually, http, running, stdio } from "./support.js"

const look = { tools: { look: { steps: [{ ...running, repeat: 99 }] } } }

const callOnce = (config: ServerConfig, tool = "look") =>
  Effect.scoped(
    Effect.flatMap(ConnectionPool, (pool) => pool.use(config, (loan, signal) => loan.call(tool, {}, signal)))
  )

it.live("makes one connection for concurrent callers, and closes it with the layer", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(look)
    yield* Effect.all(Array.from({ length: 10 }, () => callOnce(stdio(jobs))), { concurrency: "unbounded" }).pipe(
      Effect.provide(ConnectionPool.layer)
    )
    assert.strictEqual(jobs.count("start"), 1)
    assert.strictEqual(jobs.calls("look"), 10)
    const [, initialize] = jobs.events()
    assert.deepStrictEqual(initialize, { type: "initialize", client: "mcp-sentinel" })
    assertNoOrphans(jobs)
  })))

it.live("closes stubborn servers side by side", () =>
  Effect.scoped(Effect.gen(function*() {
    const stubborn = { ...look, ignoreEof: true, ignoreSigterm: true }
    const servers = yield* Effect.all([stdioJobs(stubborn), stdioJobs(stubborn), stdioJobs(stubborn)])
    let from = 0
    yield* Effect.forEach(servers, (jobs, index) => callOnce({ ...stdio(jobs), name: `s${index}` })).pipe(
      Effect.tap(() => Effect.sync(() => void (from = performance.now()))),
      Effect.provide(ConnectionPool.layer)
    )
    assert.isBelow(performance.now() - from, 3_500)
    servers.forEach(assertNoOrphans)
  })))

it.live("closes a server that is still starting", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs({ start: { hang: true } })
    yield* Effect.gen(function*() {
      const fiber = yield* Effect.fork(callOnce(stdio(jobs)))
      yield* eventually(() => jobs.count("initialize") === 1)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(ConnectionPool.layer))
    assertNoOrphans(jobs)
  })))

it.live("closes an idle connection and opens another when needed, without calling it a restart", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(look)
    yield* Effect.gen(function*() {
      const pool = yield* ConnectionPool
      yield* callOnce(stdio(jobs))
      yield* eventually(() => jobs.count("eof") === 1)
      yield* callOnce(stdio(jobs))
      assert.strictEqual(jobs.count("start"), 2)
      assert.strictEqual(pool.restarts("jobs"), 0)
    }).pipe(Effect.provide(ConnectionPool.layerWith({ idle: 50 })))
    assertNoOrphans(jobs)
  })))

it.live("keeps a held connection open until the last holder lets go", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(look)
    yield* Effect.gen(function*() {
      const pool = yield* ConnectionPool
      const [one, other] = yield* Effect.all([Scope.make(), Scope.make()])
      yield* Scope.extend(pool.hold("jobs"), one)
      yield* Scope.extend(pool.hold("jobs"), other)
      yield* callOnce(stdio(jobs))
      yield* Scope.close(one, Exit.void)
      yield* Effect.sleep(300)
      yield* callOnce(stdio(jobs))
      assert.strictEqual(jobs.count("start"), 1)
      yield* Scope.close(other, Exit.void)
      yield* eventually(() => jobs.count("eof") === 1)
      yield* Effect.scoped(pool.hold("never-used"))
    }).pipe(Effect.provide(ConnectionPool.layerWith({ idle: 50 })))
    assertNoOrphans(jobs)
  })))

it.live("retires the connection of a changed configuration, and only of a changed one", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(look)
    yield* Effect.gen(function*() {
      const pool = yield* ConnectionPool
      yield* callOnce(stdio(jobs))
      yield* callOnce({ ...stdio(jobs), enabledTools: ["look"] })
      assert.strictEqual(jobs.count("start"), 1)
      const changed = stdio(jobs, { callTimeout: 9_000 })
      assert.isTrue(Option.isNone(yield* pool.knownTools(changed)))
      yield* callOnce(changed)
      assert.strictEqual(jobs.count("start"), 2)
      assert.strictEqual(jobs.count("eof"), 1)
      assert.strictEqual(pool.restarts("jobs"), 0)
    }).pipe(Effect.provide(ConnectionPool.layer))
    assertNoOrphans(jobs)
  })))

it.live("lists all pages once, and again after list_changed", () =>
  Effect.scoped(Effect.gen(function*() {
    const tools = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`t${index}`, { steps: [done] }]))
    const jobs = yield* stdioJobs({
      tools: { ...tools, t0: { steps: [{ ...done, toolsChanged: true }] } },
      pageSize: 50
    })
    const config = stdio(jobs)
    yield* Effect.gen(function*() {
      const pool = yield* ConnectionPool
      assert.isTrue(Option.isNone(yield* pool.knownTools(config)))
      const [list] = yield* Effect.all([pool.tools(config), pool.tools(config)], { concurrency: 2 })
      assert.strictEqual(list.tools.length, 101)
      assert.isTrue(list.complete)
      assert.strictEqual(jobs.count("list"), 3)
      assert.isTrue(Option.isSome(yield* pool.knownTools(config)))
      yield* callOnce(config, "t0")
      yield* Effect.sleep(50)
      assert.isTrue(Option.isNone(yield* pool.knownTools(config)))
      yield* pool.tools(config)
      assert.strictEqual(jobs.count("list"), 6)
    }).pipe(Effect.provide(ConnectionPool.layer))
    assertNoOrphans(jobs)
  })))

it.live("ends a list whose cursor does not advance, as incomplete", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs({ ...look, pageSize: 1, stuckCursor: true })
    const list = yield* Effect.flatMap(ConnectionPool, (pool) => pool.tools(stdio(jobs))).pipe(
      Effect.provide(ConnectionPool.layer)
    )
    assert.isFalse(list.complete)
    assert.strictEqual(jobs.count("list"), 2)
  })))

it.live("opens one HTTP session and gives it back", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* httpJobs(look)
    yield* Effect.all([callOnce(http(jobs)), callOnce(http(jobs))], { concurrency: 2 }).pipe(
      Effect.provide(ConnectionPool.layer)
    )
    assert.strictEqual(jobs.count("session"), 1)
    assert.strictEqual(jobs.count("delete"), 1)
  })))

it.live("does not wait for a server that does not take its session back", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* httpJobs({ ...look, http: { hangDelete: true } })
    let from = 0
    yield* callOnce(http(jobs)).pipe(
      Effect.tap(() => Effect.sync(() => void (from = performance.now()))),
      Effect.provide(ConnectionPool.layer)
    )
    assert.isBelow(performance.now() - from, 1_500)
    assert.strictEqual(jobs.count("delete"), 1)
  })))

it.live("starts one process for a crowd that comes in one moment", () =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(look)
    yield* Effect.gen(function*() {
      const run = Runtime.runPromise(yield* Effect.runtime<ConnectionPool>())
      yield* Effect.promise(() => Promise.all(Array.from({ length: 20 }, () => run(callOnce(stdio(jobs))))))
      assert.strictEqual(jobs.count("start"), 1)
      assert.strictEqual(jobs.calls(), 20)
    }).pipe(Effect.provide(ConnectionPool.layer))
    assertNoOrphans(jobs)
  })))
