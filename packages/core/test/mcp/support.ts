import { assert } from "@effect/vitest"
import { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import type { PoolOptions } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import * as McpInvoker from "@gcszhn/mcp-sentinel-core/mcp/McpInvoker"
import type { Catalogue, HttpServer, ServerConfig } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import { McpServers } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import type { HttpJobs, StdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { existsSync, readFileSync } from "node:fs"

export type Entry = Catalogue["servers"][number]

export const server = (name: string, endpoint: ServerConfig["endpoint"], more: Partial<ServerConfig> = {}): Entry => ({
  name,
  endpoint,
  source: "test.json",
  ...more
})

export const stdio = (jobs: Pick<StdioJobs, "command" | "args">, more: Partial<ServerConfig> = {}): Entry =>
  server("jobs", { _tag: "stdio", command: jobs.command, args: jobs.args, env: {} }, more)

export const http = (
  jobs: Pick<HttpJobs, "url">,
  more: Partial<ServerConfig> & { readonly transport?: HttpServer["transport"] } = {}
): Entry => server("jobs", { _tag: "http", url: jobs.url, headers: {}, transport: more.transport ?? "auto" }, more)

/** Servers that a refresh replaces by the next catalogue. */
export const serversOf = (...catalogues: readonly [Partial<Catalogue>, ...ReadonlyArray<Partial<Catalogue>>]) =>
  Layer.effect(
    McpServers,
    Effect.map(Ref.make(0), (index) => {
      const at = (position: number): Catalogue => ({
        servers: [],
        unusable: [],
        problems: [],
        ...catalogues[Math.min(position, catalogues.length - 1)]
      })
      return {
        catalogue: Effect.map(Ref.get(index), at),
        refresh: Effect.map(Ref.updateAndGet(index, (position) => position + 1), at)
      }
    })
  )

export const invokerOf = (servers: ReadonlyArray<Entry>, options: PoolOptions = {}) =>
  Layer.provideMerge(McpInvoker.layer, Layer.merge(ConnectionPool.layerWith(options), serversOf({ servers })))

/** A process that has ended but was not yet reaped by init is not alive. */
export const isAlive = (pid: number): boolean => {
  try {
    if (!existsSync("/proc/self/status")) return process.kill(pid, 0)
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

/** No process that the server's script started is left. */
export const assertNoOrphans = (jobs: StdioJobs) => {
  assert.deepStrictEqual(jobs.pids().filter(isAlive), [])
}

export const eventually = (holds: () => boolean, millis = 5_000) =>
  Effect.gen(function*() {
    for (let waited = 0; !holds(); waited += 20) {
      if (waited > millis) return assert.fail(`not within ${millis} ms: ${holds.toString()}`)
      yield* Effect.sleep(20)
    }
  })

export const call = (tool: string, args = {}, session?: string) => ({
  server: "jobs",
  tool,
  args,
  origin: { session }
})

export const running = { json: { status: "running" } }
export const done = { json: { status: "done" } }
