import { assert, it } from "@effect/vitest"
import { httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"

const connected = (transport: Transport) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "test", version: "1.0.0" })
      await client.connect(transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const text = (client: Client, name: string, args = {}) =>
  Effect.promise(async () => {
    const { content: [block] } = CallToolResultSchema.parse(await client.callTool({ name, arguments: args }))
    return block?.type === "text" ? block.text : ""
  })

const walk = (client: Client) =>
  Effect.gen(function*() {
    assert.strictEqual(yield* text(client, "start_job", { polls: 2 }), `{"id":"job-1","status":"running"}`)
    assert.include(yield* text(client, "get_status", { id: "job-1" }), `"running","progress":50`)
    assert.include(yield* text(client, "get_status", { id: "job-1" }), `"done","progress":100`)
    assert.strictEqual(yield* text(client, "get_status", { id: "job-2" }), "no job job-2")
    const { tools } = yield* Effect.promise(() => client.listTools())
    assert.deepStrictEqual(tools.map(({ name }) => name), ["start_job", "get_status"])
  })

it.scopedLive("runs jobs in memory over stdio, for a client that nobody here wrote", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ jobs: true })
    const client = yield* connected(new StdioClientTransport({ command: jobs.command, args: [...jobs.args] }))
    yield* walk(client)
    assert.strictEqual(jobs.calls("get_status"), 3)
    assert.strictEqual(jobs.maxInFlight(), 1)
    assert.strictEqual(jobs.pids().length, 1)
  }))

it.scopedLive("runs the same jobs over HTTP", () =>
  Effect.gen(function*() {
    const jobs = yield* httpJobs({ jobs: true })
    const transport = new StreamableHTTPClientTransport(new URL(jobs.url))
    yield* walk(yield* connected(transport))
    yield* Effect.promise(() => transport.terminateSession())
    assert.strictEqual(jobs.count("session"), 1)
    assert.strictEqual(jobs.count("delete"), 1)
  }))
