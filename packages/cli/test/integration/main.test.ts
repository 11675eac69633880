import { assert, describe, it } from "@effect/vitest"
import { type CliClient, startCli } from "@gcszhn/mcp-sentinel-testkit/CliClient"
import { freePort } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import { httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import { everythingServer, filesystemServer, memoryServer } from "@gcszhn/mcp-sentinel-testkit/RealServers"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  attach,
  done,
  firstLook,
  folder,
  idOf,
  is,
  isDone,
  node,
  poll,
  read,
  running,
  says,
  status,
  until,
  waitFor
} from "./support.js"

/** ms for tests that wait for real time to pass, on a machine that others use too */
const patient = 120_000

const epochNow = () => performance.timeOrigin + performance.now()

const median = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN

/** ms between the answer of a server and the return of an attach, for jobs that end one after the other */
const attachLatencies = Effect.gen(function*() {
  const names = Array.from({ length: 15 }, (_, index) => `job${index}`)
  const tools = Object.fromEntries(
    names.map((name, index) => [name, { steps: [{ ...done, delay: 2_500 + index * 80 }] }])
  )
  const jobs = yield* httpJobs({ tools })
  const cli = yield* startCli({ servers: { jobs: { url: jobs.url } } })
  return yield* Effect.forEach(names, (tool) =>
    Effect.gen(function*() {
      const ack = yield* poll(cli, { server: "jobs", tool, until: isDone })
      assert.strictEqual(ack.structured["status"], "polling")
      const end = yield* attach(cli, idOf(ack))
      const returned = epochNow()
      assert.strictEqual(end.structured["status"], "completed")
      const [answer] = jobs.events().flatMap((event) =>
        event.type === "answer" && event.tool === tool ? [event.at] : []
      )
      assert.isDefined(answer)
      return returned - answer
    }), { concurrency: "unbounded" })
})

it.live(
  "attach returns within 20 ms of the end (median of 15; the best of three tries, since other tests use the machine)",
  () =>
    Effect.gen(function*() {
      const tries: Array<number> = []
      while (tries.length < 3 && !tries.some((ms) => ms <= 20)) {
        tries.push(median(yield* Effect.scoped(attachLatencies)))
      }
      yield* Effect.log(`attach after the end, medians of 15: ${tries.map((ms) => ms.toFixed(1)).join(", ")} ms`)
      assert.isAtMost(Math.min(...tries), 20)
    }),
  patient
)

it.scopedLive(
  "submits a job that only lives in the server's memory, once, and waits for it",
  () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ jobs: true })
      const cli = yield* startCli({ servers: { jobs: { command: jobs.command, args: jobs.args } } })
      const end = yield* waitFor(cli, {
        server: "jobs",
        tool: "get_status",
        start: { tool: "start_job", args: { polls: 3 } },
        args: { id: { $from: "id" } },
        until: isDone
      })
      says(end.text, "**Status:** completed")
      assert.strictEqual(jobs.calls("start_job"), 1)
      assert.strictEqual(jobs.pids().length, 1)
    }),
  patient
)

it.scopedLive("never submits again what may have been submitted", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ tools: { submit: { steps: [{ exit: 1 }, done] }, look: { steps: [done] } } })
    const cli = yield* startCli({ servers: { jobs: { command: jobs.command, args: jobs.args } } })
    const end = yield* waitFor(cli, { server: "jobs", tool: "look", start: { tool: "submit" }, until: isDone })
    says(end.text, "**Status:** error", "whether the job runs is unknown")
    assert.strictEqual(jobs.calls("submit"), 1)
    assert.strictEqual(jobs.calls("look"), 0)
  }), patient)

/** A second process on the same memory file, as another program of the user. */
const remember = (file: string, name: string, observation: string) =>
  Effect.promise(async () => {
    const client = new Client({ name: "writer", version: "1.0.0" })
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [memoryServer],
        env: { MEMORY_FILE_PATH: file },
        stderr: "ignore"
      })
    )
    const entities = [{ name, entityType: "job", observations: [] }]
    await client.callTool({ name: "create_entities", arguments: { entities } })
    const observations = [{ entityName: name, contents: [observation] }]
    await client.callTool({ name: "add_observations", arguments: { observations } })
    await client.close()
  })

/** server-everything on a port, from its first answer until the scope ends. */
const everythingOn = (port: number, env: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.async<ReturnType<typeof spawn>>((resume) => {
      const child = spawn(process.execPath, [everythingServer, "streamableHttp"], {
        env: { PORT: String(port), ...env },
        stdio: "pipe"
      })
      child.stdout.resume()
      child.stderr.on("data", (chunk: Buffer) => {
        if (/listening|running/i.test(chunk.toString())) resume(Effect.succeed(child))
      })
    }),
    (child) =>
      Effect.async<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )

describe.concurrent("servers that nobody here wrote, through the built command", () => {
  it.scopedLive(
    "server-filesystem: a file that appears at the tenth poll, then its status",
    () =>
      Effect.gen(function*() {
        const path = yield* folder
        const file = join(path, "job.json")
        const cli = yield* startCli({ servers: { files: node(filesystemServer, [path]) } })
        const ack = yield* poll(cli, {
          server: "files",
          tool: "get_file_info",
          args: { path: file },
          until: { path: "content", is: "contains", value: "size:" }
        })
        says(ack.text, "second process of server \"files\"", "only in memory", "**Interval:** 1000 ms")
        const id = idOf(ack)
        says((yield* firstLook(cli, id)).text, "ENOENT", "**Consecutive errors:** 0 of 3")
        yield* until(cli.call("mcp_sentinel_status", { id }), ({ structured }) => structured["polls"] === 9)
        writeFileSync(file, `{"status":"running"}`)
        const appeared = yield* attach(cli, id)
        assert.include(appeared.structured, { status: "completed", polls: 10 })

        const again = yield* poll(cli, { server: "files", tool: "read_text_file", args: { path: file }, until: isDone })
        says((yield* firstLook(cli, idOf(again))).text, `status is "running"`)
        writeFileSync(file, `{"status":"done"}`)
        assert.strictEqual((yield* attach(cli, idOf(again))).structured["status"], "completed")
      }),
    patient
  )

  it.scopedLive("server-memory: an observation that a second process writes", () =>
    Effect.gen(function*() {
      const file = join(yield* folder, "memory.jsonl")
      const cli = yield* startCli({ servers: { memory: node(memoryServer, [], { MEMORY_FILE_PATH: file }) } })
      const ack = yield* poll(cli, {
        server: "memory",
        tool: "open_nodes",
        args: { names: ["build"] },
        until: { path: "entities[0].observations", is: "contains", value: "status: completed" }
      })
      says((yield* firstLook(cli, idOf(ack))).text, "path \"entities[0].observations\"")
      yield* remember(file, "build", "status: completed")
      const end = yield* attach(cli, idOf(ack))
      says(end.text, "## Sentinel Complete", "status: completed")
    }))

  it.scopedLive("server-everything over stdio: an operation longer than the first look", () =>
    Effect.gen(function*() {
      const cli = yield* startCli({ servers: { everything: node(everythingServer) } })
      const ack = yield* poll(cli, {
        server: "everything",
        tool: "trigger-long-running-operation",
        args: { duration: 2, steps: 4 },
        until: { is: "contains", value: "completed" }
      })
      assert.include(ack.structured, { status: "polling", polls: 0 })
      assert.include((yield* attach(cli, idOf(ack))).structured, { status: "completed", polls: 1 })
      const weather = yield* waitFor(cli, {
        server: "everything",
        tool: "get-structured-content",
        args: { location: "New York" },
        until: is("conditions", "Cloudy")
      })
      assert.strictEqual(weather.structured["status"], "completed")
    }))

  it.scopedLive(
    "server-everything over Streamable HTTP: its restart in the middle of a wait",
    () =>
      Effect.gen(function*() {
        const port = yield* freePort
        const cli = yield* startCli({ servers: { everything: { url: `http://127.0.0.1:${port}/mcp` } } })
        const id = yield* Effect.scoped(Effect.gen(function*() {
          yield* everythingOn(port, { JOB: "running" })
          const ack = yield* poll(cli, {
            server: "everything",
            tool: "get-env",
            until: is("JOB", "done"),
            max_errors: 9
          })
          says((yield* firstLook(cli, idOf(ack))).text, `JOB is "running"`)
          assert.notInclude(ack.text, "second process")
          yield* until(status(cli, idOf(ack)), ({ structured }) => Number(structured["polls"]) >= 2)
          return idOf(ack)
        }))
        yield* everythingOn(port, { JOB: "done" })
        const end = yield* attach(cli, id)
        assert.include(end.structured, { status: "completed", restarts: 0 })
      }),
    patient
  )
})

describe.concurrent("the MCP server", () => {
  it.scopedLive("answers initialize and poll although a server hangs", () =>
    Effect.gen(function*() {
      const hanging = yield* stdioJobs({ start: { hang: true } })
      const cli = yield* startCli({ servers: { hanging: { ...hanging, env: {} } }, connects: false })
      const from = performance.now()
      yield* cli.connect
      const ack = yield* poll(cli, { server: "hanging", tool: "look", until: isDone })
      assert.isBelow(performance.now() - from, 25_000)
      says(ack.text, "the first call has not answered yet")
      assert.strictEqual((yield* cli.call("mcp_sentinel_status", { action: "list" })).isError, false)
    }))

  it.scopedLive("describes its tools by annotations, and gives what it says as data too", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [running, done] } } })
      const cli = yield* startCli({ servers: { jobs } })
      const tools = yield* cli.tools
      const readOnly = tools.filter(({ annotations }) => annotations?.readOnlyHint === true).map(({ name }) => name)
      assert.includeMembers(readOnly, ["mcp_sentinel_attach", "mcp_sentinel_read"])
      assert.notInclude(readOnly, "mcp_sentinel_poll")
      for (const { inputSchema, name } of tools) {
        assert.strictEqual(inputSchema.type, "object", name)
        assert.notMatch(JSON.stringify(inputSchema), /\$ref|\$defs|"additionalProperties":\{\}/, name)
        for (const word of ["oneOf", "anyOf", "allOf"]) assert.notProperty(inputSchema, word, name)
      }
      const ack = yield* poll(cli, { server: "jobs", tool: "look", until: isDone })
      const id = idOf(ack)
      assert.include(ack.structured, { status: "polling", server: "jobs", tool: "look" })
      const list = yield* cli.call("mcp_sentinel_status", { action: "list" })
      assert.lengthOf(Object(list.structured["sentinels"]), 1)
      assert.include((yield* attach(cli, id)).structured, { id, status: "completed", polls: 2 })
      assert.include((yield* status(cli, id)).structured, { id, status: "completed", notice: "none" })
      const log = yield* read(cli, id)
      assert.include(log.structured, { id, total: 2, offset: 0 })
      assert.deepInclude(Object(log.structured["entries"])[1], { poll: 2, value: `{"status":"done"}` })
    }))

  it.scopedLive("refuses with the names that would be right", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [running] }, leave: { steps: [done] } } })
      const cli = yield* startCli({ servers: { jobs, off: { command: "x", enabled: false } } })
      const server = yield* poll(cli, { server: "jbos", tool: "look", until: isDone })
      assert.isTrue(server.isError)
      says(server.text, /^Error: /, "\"jbos\"", "Known servers: \"jobs\"")
      const off = yield* poll(cli, { server: "off", tool: "look", until: isDone })
      says(off.text, /^Error: /, "switched off", cli.configFile)
      const tool = yield* waitFor(cli, { server: "jobs", tool: "lok", until: isDone })
      assert.strictEqual(tool.structured["status"], "error", tool.text)
      says(tool.text, "\"lok\"", "\"look\", \"leave\"")
      for (const action of ["status", "cancel"]) {
        const unknown = yield* cli.call("mcp_sentinel_status", { id: "sentinel_0", action })
        assert.isTrue(unknown.isError)
        says(unknown.text, /^Error: /, "sentinel_0")
      }
      const none = yield* cli.call("mcp_sentinel_poke", {})
      assert.isTrue(none.isError)
      says(none.text, "mcp_sentinel_poke", "mcp_sentinel_poll")
    }))

  it.scopedLive("understands JSON text where JSON was meant", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [done] } } })
      const cli = yield* startCli({ servers: { jobs } })
      const target = { server: "jobs", tool: "look" }
      const nested = { id: 1, inner: `{"kept":"as text"}` }
      const ok = yield* waitFor(cli, {
        ...target,
        args: JSON.stringify(nested),
        until: JSON.stringify(isDone),
        interval: "2000",
        max_errors: "2"
      })
      assert.strictEqual(ok.structured["status"], "completed")
      assert.isFalse((yield* poll(cli, { ...target, args: "", until: isDone })).isError)
      const calls = jobs.events().flatMap((event) => event.type === "call" ? [event.args] : [])
      assert.deepStrictEqual(calls, [nested, {}])
      for (const args of ["not json", "[1]", [1], 5]) {
        const refused = yield* poll(cli, { ...target, args, until: isDone })
        assert.isTrue(refused.isError)
        says(refused.text, /^Error: .*"args" must be a JSON object/)
      }
    }))

  it.scopedLive("tells progress while attach waits, and goes on when attach is cancelled", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [{ ...running, repeat: 3 }, done] } } })
      const cli = yield* startCli({ servers: { jobs } })
      const id = idOf(yield* poll(cli, { server: "jobs", tool: "look", until: isDone }))
      const abandoned = yield* Effect.fork(attach(cli, id))
      yield* Effect.sleep(300)
      yield* Fiber.interrupt(abandoned)
      const told: Array<{ readonly progress: number; readonly message?: string | undefined }> = []
      const end = yield* cli.call("mcp_sentinel_attach", { id }, { onProgress: (progress) => void told.push(progress) })
      assert.include(end.structured, { status: "completed", polls: 4 })
      assert.isAtLeast(told.length, 2)
      told.reduce((before, { progress }) => (assert.isAbove(progress, before), progress), -1)
      says(told[0]?.message ?? "", /^poll \d+, \d+s/, `status is "running"`)
    }))
})

/** the text of the configuration, what a tool says of it, and what is known nonetheless */
const configurations: ReadonlyArray<
  readonly [name: string, config: string, line: number | undefined, words: ReadonlyArray<string>]
> = [
  ["text that is no JSON", `{\n  "mcpServers": {\n    "jobs": {,\n}`, 3, ["not valid JSON"]],
  ["nothing", "", undefined, []],
  ["a list", "[]", 1, ["must hold an object"]],
  ["no server", "{}", undefined, ["names no server"]],
  ["servers that are a list", `{\n"servers": []\n}`, undefined, ["names no server"]]
]

describe.concurrent("a configuration that is wrong", () => {
  const pollIt = (cli: CliClient, server = "jobs") => poll(cli, { server, tool: "look", until: isDone })

  for (const [name, config, line, words] of configurations) {
    it.scopedLive(`starts with ${name}, and says file, line and what is wrong`, () =>
      Effect.gen(function*() {
        const cli = yield* startCli({ config })
        const refused = yield* pollIt(cli)
        assert.isTrue(refused.isError)
        for (const text of [refused.text, cli.stderr()]) {
          says(text, line === undefined ? cli.configFile : `${cli.configFile}:${line}`, ...words)
        }
      }))
  }

  it.scopedLive("starts with a file that is missing", () =>
    Effect.gen(function*() {
      const cli = yield* startCli({ args: ["--mcp-config", "/nowhere/servers.json"] })
      const refused = yield* pollIt(cli)
      for (const text of [refused.text, cli.stderr()]) says(text, "/nowhere/servers.json", "does not exist")
    }))

  it.scopedLive("names a bad entry with its line, and uses the good ones", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [done] } } })
      const good = JSON.stringify({ command: jobs.command, args: jobs.args })
      const cli = yield* startCli({
        config: `{ "mcpServers": {\n"jobs": ${good},\n"bad": {\n"command": 7 },\n"unset": { "command": "\${NOPE}" } } }`
      })
      assert.strictEqual((yield* pollIt(cli)).structured["status"], "completed")
      for (const [name, line, word] of [["bad", 4, "must be a program"], ["unset", 5, "${NOPE}"]] as const) {
        const refused = yield* pollIt(cli, name)
        assert.isTrue(refused.isError)
        for (const text of [refused.text, cli.stderr()]) says(text, name, `${cli.configFile}:${line}`, word)
      }
    }))
})
