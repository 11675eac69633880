import { assert, describe, it } from "@effect/vitest"
import { startCli } from "@gcszhn/mcp-sentinel-testkit/CliClient"
import type { TaskScript } from "@gcszhn/mcp-sentinel-testkit/JobScript"
import { stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import { everythingServer } from "@gcszhn/mcp-sentinel-testkit/RealServers"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { CallToolResultSchema, CreateTaskResultSchema } from "@modelcontextprotocol/sdk/types.js"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { attach, firstLook, folder, idOf, node, poll, read, says, status, until, waitFor } from "./support.js"

const patient = 60_000

const query = { server: "everything", tool: "simulate-research-query", args: { topic: "bees" } }
const exists = { is: "exists", value: true }

/** Passes everything between a client and the real server on, and writes down what the client asks for. */
const wiretap = `
const { spawn } = require("node:child_process")
const { appendFileSync } = require("node:fs")
const [log, ...command] = process.argv.slice(1)
const server = spawn(process.execPath, command, { stdio: ["pipe", "pipe", "inherit"] })
server.stdout.pipe(process.stdout)
process.stdin.on("data", (chunk) => (appendFileSync(log, chunk), server.stdin.write(chunk)))
process.stdin.on("end", () => server.stdin.end())
server.on("exit", (code) => process.exit(code ?? 1))
`

const tapped = Effect.map(folder, (path) => {
  const log = join(path, "wire.jsonl")
  return {
    entry: { command: process.execPath, args: ["-e", wiretap, log, everythingServer] },
    methods: (): ReadonlyArray<string> =>
      existsSync(log)
        ? readFileSync(log, "utf8").split("\n").flatMap((line) => {
          const method = /"method":"((?:tools\/call|tasks\/)[^"]*)"/.exec(line)?.[1]
          return method === undefined ? [] : [method]
        })
        : []
  }
})

const countOf = (methods: ReadonlyArray<string>, method: string) => methods.filter((one) => one === method).length

/** What an agent does that has nothing but a tool for each request: status by status, at the server's pace. */
const byHand = (everything: { readonly command: string; readonly args: ReadonlyArray<string> }) =>
  Effect.promise(async () => {
    const client = new Client({ name: "an-agent", version: "1.0.0" }, { capabilities: {} })
    await client.connect(new StdioClientTransport({ command: everything.command, args: [...everything.args] }))
    const params = { name: query.tool, arguments: query.args, task: { ttl: 60_000 } }
    const { task } = await client.request({ method: "tools/call", params }, CreateTaskResultSchema)
    let { status } = task
    while (status === "working") {
      await new Promise((resolve) => setTimeout(resolve, task.pollInterval ?? 1_000))
      status = (await client.experimental.tasks.getTask(task.taskId)).status
    }
    await client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema)
    await client.close()
    return status
  })

describe("simulate-research-query of the real server-everything", () => {
  it.scopedLive(
    "is driven to its end by two calls of the agent; by hand it takes a call for each status",
    () =>
      Effect.gen(function*() {
        const [tap, hand] = [yield* tapped, yield* tapped]
        const cli = yield* startCli({ servers: { everything: tap.entry } })
        const ack = yield* poll(cli, { ...query, until: exists, interval: 5_000 })
        const id = idOf(ack)
        yield* firstLook(cli, id)
        const looked = yield* status(cli, id)
        says(looked.text, "**MCP task:** started once", "is working", "**Status:** polling")
        const end = yield* attach(cli, id)
        says(end.text, "## Sentinel Complete", "# Research Report: bees", "Stage 4: Generating report")
        says((yield* read(cli, id)).text, "\"status\":\"working\"", "# Research Report: bees")

        assert.strictEqual(yield* byHand(hand.entry), "completed")
        const sentinel = tap.methods()
        const agent = hand.methods()
        yield* Effect.log(
          `by hand: ${agent.length} requests, ${
            countOf(agent, "tasks/get")
          } of them for the status; with the sentinel: ` +
            `2 calls of the agent (poll, attach), and between sentinel and server ${sentinel.join(", ")}`
        )
        assert.strictEqual(countOf(sentinel, "tools/call"), 1)
        assert.strictEqual(countOf(sentinel, "tasks/result"), 1)
        assert.isAtLeast(countOf(agent, "tasks/get"), 3)
        assert.isAtMost(countOf(sentinel, "tasks/get"), 1, "the server's notification ends the pause")
      }),
    patient
  )

  it.scopedLive(
    "is judged by its result: fail_when, and an until that it does not fulfil",
    () =>
      Effect.gen(function*() {
        const cli = yield* startCli({ servers: { everything: node(everythingServer) } })
        const [wrong, bad] = yield* Effect.all([
          waitFor(cli, { ...query, until: { is: "contains", value: "wasps" } }),
          waitFor(cli, { ...query, until: exists, fail_when: { is: "contains", value: "bees" } })
        ], { concurrency: 2 })
        says(wrong.text, "**Status:** failed", "it has completed, but until does not hold for its result")
        says(bad.text, "**Status:** failed", "fail_when holds")
      }),
    patient
  )

  it.scopedLive("is cancelled at the server", () =>
    Effect.gen(function*() {
      const tap = yield* tapped
      const cli = yield* startCli({ servers: { everything: tap.entry } })
      const id = idOf(yield* poll(cli, { ...query, until: exists }))
      yield* firstLook(cli, id)
      const cancelled = yield* cli.call("mcp_sentinel_status", { id, action: "cancel" })
      says(cancelled.text, "**Status:** cancelled")
      assert.strictEqual(countOf(tap.methods(), "tasks/cancel"), 1)
      assert.notInclude(cli.stderr(), "not cancelled")
    }), patient)
})

const scripted = (task: TaskScript) =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ tools: { research: { task, steps: [{}] } } })
    const cli = yield* startCli({ servers: { jobs: { command: jobs.command, args: jobs.args } } })
    return {
      jobs,
      cli,
      wait: (more = {}) => waitFor(cli, { server: "jobs", tool: "research", until: exists, ...more })
    }
  })

describe("a scripted task server", () => {
  it.scopedLive("a failed task is failed, whatever until says", () =>
    Effect.gen(function*() {
      const { wait } = yield* scripted({
        push: true,
        stages: [{ status: "working", millis: 300 }, {
          status: "failed",
          statusMessage: "disk full",
          result: { isError: "disk full" }
        }]
      })
      says((yield* wait()).text, "## Sentinel Failed", "**Status:** failed", /MCP task "task-1" failed: disk full/)
    }), patient)

  it.scopedLive("a question ends the wait, with what the server asks", () =>
    Effect.gen(function*() {
      const { wait } = yield* scripted({
        push: true,
        stages: [{ status: "working", millis: 300 }, { status: "input_required", question: "Which bees?" }]
      })
      says((yield* wait()).text, "**Status:** failed", "input_required", "The server asks: Which bees?")
    }), patient)

  it.scopedLive("the server's poll interval is longer than the agent's, and is kept", () =>
    Effect.gen(function*() {
      const { cli, jobs, wait } = yield* scripted({
        pollInterval: 3_000,
        stages: [{ status: "working", millis: 1_000 }, { status: "completed", result: { json: { ok: true } } }]
      })
      const [took, end] = yield* Effect.timed(wait())
      says(end.text, "**Status:** completed", "**Poll count:** 2")
      assert.isAtLeast(Duration.toMillis(took), 3_000)
      assert.strictEqual(jobs.asked("tasks/get"), 1)
      assert.isEmpty(cli.stray())
    }), patient)

  it.scopedLive("the end of the sentinel's process leaves the task alone", () =>
    Effect.gen(function*() {
      const { cli, jobs } = yield* scripted({ stages: [{ status: "working" }] })
      yield* poll(cli, { server: "jobs", tool: "research", until: exists })
      yield* until(Effect.sync(() => jobs.calls("research")), (calls) => calls === 1)
      yield* cli.close
      assert.strictEqual(jobs.asked("tasks/cancel"), 0)
    }), patient)
})
