import { assert, it } from "@effect/vitest"
import { gone, processTree } from "@gcszhn/mcp-sentinel-core/mcp/ProcessTree"
import { StdioTransport } from "@gcszhn/mcp-sentinel-core/mcp/StdioTransport"
import { jobServerProgram, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import type { StdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { assertNoOrphans, eventually, isAlive } from "./support.js"

const endpoint = (jobs: Pick<StdioJobs, "command" | "args">, env: Record<string, string> = {}) => ({
  _tag: "stdio" as const,
  command: jobs.command,
  args: jobs.args,
  env
})

const ping = { jsonrpc: "2.0", id: 1, method: "ping" } as const

const started = (transport: StdioTransport) =>
  Effect.gen(function*() {
    const messages: Array<JSONRPCMessage> = []
    let closes = 0
    transport.onmessage = (message) => void messages.push(message)
    transport.onclose = () => void closes++
    yield* Effect.promise(() => transport.start())
    return { messages, closes: () => closes }
  })

const timed = (transport: StdioTransport) =>
  Effect.promise(async () => {
    const from = performance.now()
    await transport.close()
    return performance.now() - from
  })

it.scopedLive("gives the child exactly the environment of the configuration", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({})
    const transport = new StdioTransport(endpoint(jobs, { ONLY: "this" }))
    yield* started(transport)
    yield* eventually(() => jobs.count("start") === 1)
    const start = jobs.events()[0]
    assert.deepStrictEqual(start?.type === "start" ? start.env : [], ["ONLY"])
    yield* timed(transport)
    assertNoOrphans(jobs)
  }))

it.scopedLive("lets a server that leaves at the end of stdin leave by itself", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({})
    const transport = new StdioTransport(endpoint(jobs))
    const { closes } = yield* started(transport)
    yield* eventually(() => jobs.count("start") === 1)
    assert.isBelow(yield* timed(transport), 600)
    assert.strictEqual(jobs.count("eof"), 1)
    assert.strictEqual(jobs.count("sigterm"), 0)
    assert.strictEqual(closes(), 1)
    assert.isBelow(yield* timed(transport), 20)
    assertNoOrphans(jobs)
  }))

it.scopedLive("ends a wrapped server that ignores EOF and SIGTERM, with its wrapper, within 3 s", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ ignoreEof: true, ignoreSigterm: true })
    const command = [jobs.command, ...jobs.args].map((word) => `'${word}'`).join(" ")
    const transport = new StdioTransport(endpoint({ command: "/bin/sh", args: ["-c", `${command}; true`] }))
    yield* started(transport)
    yield* eventually(() => jobs.count("start") === 1)
    assert.notStrictEqual(jobs.pids()[0], transport.pid)
    assert.isBelow(yield* timed(transport), 3_000)
    assert.strictEqual(jobs.count("sigterm"), 1)
    assert.isFalse(transport.pid !== undefined && isAlive(transport.pid))
    assertNoOrphans(jobs)
  }))

it.scopedLive("skips and counts noise, reads past a byte order mark, and drains stderr", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({
      start: { bom: true, banner: ["hello", "{\"level\":\"info\"}", ""], stderr: "x".repeat(100_000) + "last words" }
    })
    const transport = new StdioTransport(endpoint(jobs))
    const { messages } = yield* started(transport)
    yield* Effect.promise(() => transport.send(ping))
    yield* eventually(() => messages.length === 1)
    assert.strictEqual(transport.evidence.noise, 2)
    assert.isTrue(transport.evidence.stderr.endsWith("last words"))
    assert.isAtMost(transport.evidence.stderr.length, 2_048)
    yield* timed(transport)
    assertNoOrphans(jobs)
  }))

it.scopedLive("fails the call of a frame over the limit and reads on", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ tools: { big: { steps: [{ bytes: 5_000 }] } } })
    const transport = new StdioTransport(endpoint(jobs), 1_000)
    const { messages } = yield* started(transport)
    yield* Effect.promise(() =>
      transport.send({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "big" } })
    )
    yield* Effect.promise(() => transport.send(ping))
    yield* eventually(() => messages.length === 2)
    const failed = messages.find((message) => "error" in message)
    assert.isTrue(failed !== undefined && "id" in failed && failed.id === 7)
    yield* timed(transport)
    assertNoOrphans(jobs)
  }))

it.scopedLive("gives up a server whose long frame belongs to no call", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ start: { banner: ["y".repeat(5_000)] } })
    const transport = new StdioTransport(endpoint(jobs), 1_000)
    const { closes } = yield* started(transport)
    yield* eventually(() => closes() === 1)
    assert.match(transport.evidence.ended ?? "", /5000 bytes, over the limit of 1000/)
    assertNoOrphans(jobs)
  }))

it.live("tells a command that is not there, and closes at once", () =>
  Effect.gen(function*() {
    const transport = new StdioTransport(endpoint({ command: "no-such-command-xyz", args: [] }))
    const error = yield* Effect.flip(Effect.tryPromise({ try: () => transport.start(), catch: (error) => error }))
    assert.match(String(error), /ENOENT/)
    assert.isBelow(yield* timed(transport), 50)
    const unsent = yield* Effect.flip(Effect.tryPromise({ try: () => transport.send(ping), catch: (error) => error }))
    assert.match(String(unsent), /stdin is closed/)
  }))

it.scopedLive("notices a crash although a grandchild holds stdout open, and ends the grandchild", () =>
  Effect.gen(function*() {
    const transport = new StdioTransport(
      endpoint({ command: "/bin/sh", args: ["-c", "sleep 60 & echo $! >&2; exit 3"] })
    )
    const { closes } = yield* started(transport)
    yield* eventually(() => closes() === 1, 1_000)
    assert.match(transport.evidence.ended ?? "", /exit code 3/)
    yield* timed(transport)
    assert.isFalse(isAlive(Number(transport.evidence.stderr)))
  }))

it.live("starts in the folder of the configuration", () =>
  Effect.gen(function*() {
    const transport = new StdioTransport({ ...endpoint({ command: "/bin/sh", args: ["-c", "pwd >&2"] }), cwd: "/" })
    const { closes } = yield* started(transport)
    yield* eventually(() => closes() === 1)
    assert.strictEqual(transport.evidence.stderr, "/")
    yield* timed(transport)
  }))

it.live("asks taskkill for the tree on Windows", () =>
  Effect.gen(function*() {
    const child = spawn(process.execPath, [jobServerProgram], { stdio: "pipe" })
    const tree = processTree(child.pid ?? 0, "win32")
    assert.isTrue(tree.isAlive())
    tree.end()
    child.stdin.end()
    assert.isTrue(yield* Effect.promise(() => gone(tree, 2_000)))
  }))
