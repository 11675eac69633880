import { assert, it } from "@effect/vitest"
import { ToolInvoker } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import { everythingServer, filesystemServer, memoryServer } from "@gcszhn/mcp-sentinel-testkit/RealServers"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { call, http, invokerOf, server } from "./support.js"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "real-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const node = (program: string, args: ReadonlyArray<string> = [], env: Record<string, string> = {}) =>
  invokerOf([server("jobs", { _tag: "stdio", command: process.execPath, args: [program, ...args], env })])

const invoke = (tool: string, args = {}) => Effect.flatMap(ToolInvoker, (invoker) => invoker.invoke(call(tool, args)))

it.scopedLive("server-filesystem: an absent file is a tool error, its JSON text is the value", () =>
  Effect.gen(function*() {
    const path = yield* folder
    const file = join(path, "job.json")
    yield* Effect.gen(function*() {
      const absent = yield* Effect.flip(invoke("read_text_file", { path: file }))
      assert.strictEqual(absent._tag, "ToolFailure")
      assert.match(absent.message, /ENOENT/)
      writeFileSync(file, "{\"status\":\"running\"}\n")
      assert.deepStrictEqual((yield* invoke("read_text_file", { path: file })).value.json, { status: "running" })
      assert.strictEqual((yield* Effect.flip(invoke("read_text_file", {})))._tag, "FatalFailure")
      assert.strictEqual((yield* Effect.flip(invoke("read_txt_file", {})))._tag, "FatalFailure")
    }).pipe(Effect.provide(node(filesystemServer, [path])))
  }))

it.scopedLive("server-memory: structured content is the value", () =>
  Effect.gen(function*() {
    const path = yield* folder
    const opened = yield* invoke("open_nodes", { names: ["job"] }).pipe(
      Effect.provide(node(memoryServer, [], { MEMORY_FILE_PATH: join(path, "memory.jsonl") }))
    )
    assert.deepInclude(opened.value.json, { entities: [] })
  }))

it.live("server-everything over stdio gets no variable but those of its configuration", () =>
  Effect.gen(function*() {
    const env = yield* invoke("get-env")
    assert.deepStrictEqual(env.value.json, { ONLY: "this" })
  }).pipe(Effect.provide(node(everythingServer, [], { ONLY: "this" }))))

const freePort = Effect.async<number>((resume) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

/** The streamable server on a port, from its first answer until the scope ends. */
const everythingOn = (port: number, mode: "streamableHttp" | "sse") =>
  Effect.acquireRelease(
    Effect.async<ReturnType<typeof spawn>>((resume) => {
      const child = spawn(process.execPath, [everythingServer, mode], { env: { PORT: String(port) }, stdio: "pipe" })
      child.stderr.on("data", (chunk: Buffer) => {
        if (/listening|running/i.test(chunk.toString())) resume(Effect.succeed(child))
      })
      child.stdout.resume()
    }),
    (child) =>
      Effect.async<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )

it.live("server-everything over Streamable HTTP: a restart (HTTP 400 for the old session) is one silent reconnect", () =>
  Effect.gen(function*() {
    const port = yield* freePort
    yield* Effect.gen(function*() {
      yield* Effect.scoped(Effect.zipRight(everythingOn(port, "streamableHttp"), invoke("echo", { message: "one" })))
      const second = yield* Effect.scoped(
        Effect.zipRight(everythingOn(port, "streamableHttp"), invoke("echo", { message: "two" }))
      )
      assert.match(second.value.raw, /two/)
    }).pipe(Effect.provide(invokerOf([http({ url: `http://127.0.0.1:${port}/mcp` })])))
  }))

it.live("server-everything over the older SSE transport is found by itself", () =>
  Effect.gen(function*() {
    const port = yield* freePort
    const answer = yield* Effect.scoped(
      Effect.zipRight(everythingOn(port, "sse"), invoke("echo", { message: "hello" })).pipe(
        Effect.provide(invokerOf([http({ url: `http://127.0.0.1:${port}/sse` })]))
      )
    )
    assert.match(answer.value.raw, /hello/)
  }))
