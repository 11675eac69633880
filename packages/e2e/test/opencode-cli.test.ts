import { assert, describe, it } from "@effect/vitest"
import { eventually, type HostBox, processesIn, startIn } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import { httpJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import { lastToolResult } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { makeOpencodeBox, runOpencode, writeConfig } from "@gcszhn/mcp-sentinel-testkit/OpencodeBox"
import { scriptedLlm } from "@gcszhn/mcp-sentinel-testkit/ScriptedLlm"
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { opencode } from "../src/Binaries.js"
import { unpackCli } from "../src/cli.js"
import { gateBefore } from "../src/gate.js"
import {
  costsThreeRequests,
  leavesNothing,
  looks,
  type ToolName,
  waitedJobs,
  waitedScript,
  waitingAgent,
  withoutRepeats
} from "../src/waiting.js"

const opencodeName: ToolName = (server, tool) => `${server}_${tool}`

type Entry = Readonly<Record<string, unknown>>

interface Options {
  /** where the command finds its servers */
  readonly source: (box: HostBox) => ReadonlyArray<string>
  readonly jobs: Entry
  /** of the command's own entry */
  readonly extra?: Entry
}

const fromOpencode = () => ["--harness", "opencode"]

/** opencode with a job server and the packed command as servers of its configuration. */
const boxWith = Effect.fnUntraced(function*({ extra = {}, jobs, source }: Options) {
  const llm = yield* scriptedLlm(waitingAgent(opencodeName))
  const box = yield* makeOpencodeBox({ llm, config: {}, env: { JOB_KEY: keys.named } })
  const cli = unpackCli(join(box.root, "cli"))
  const command = [cli.command, ...cli.args, "mcp", ...source(box)]
  writeConfig(box, llm, { mcp: { jobs, sentinel: { type: "local", command, ...extra } } })
  return { box, llm }
})

const keys = { literal: "Bearer literal-s3cret", named: "named-s3cret" }

const local = Effect.map(waitedJobs, (server) => ({
  server,
  jobs: { type: "local", command: [server.command, ...server.args] }
}))

const run = Effect.fnUntraced(function*(box: HostBox, prompt: string) {
  const ended = yield* runOpencode(box, opencode(), prompt)
  assert.strictEqual(ended.code, 0, ended.stdout + ended.stderr)
  return ended.stdout
})

const noneLeft = (box: HostBox) => leavesNothing(processesIn(box), "opencode")

describe("opencode run with the packed command as a plain server", () => {
  for (const mode of ["file", "opencode"] as const) {
    it.scopedLive(
      `costs three requests for a wait, none while it waits; by hand one for every look (${mode})`,
      () =>
        Effect.gen(function*() {
          const { jobs, server } = yield* local
          const entry = { command: server.command, args: server.args }
          const fromFile = (box: HostBox) => {
            const file = join(box.root, "servers.json")
            writeFileSync(file, JSON.stringify({ mcpServers: { jobs: entry } }))
            return ["--harness", "custom", "--mcp-config", file]
          }
          const { box, llm } = yield* boxWith({ jobs, source: mode === "file" ? fromFile : fromOpencode })
          yield* costsThreeRequests({ run: (prompt) => run(box, prompt), requests: llm.turns, server })
          const [requests, turns] = [yield* llm.requests, yield* llm.turns]
          assert.isAtMost(requests.length - turns.length, 2, "at most a title that opencode asks for in each run")
          yield* noneLeft(box)
        }),
      120_000
    )
  }

  it.scopedLive(
    "reaches a remote server with headers that opencode keeps secret, and shows them nowhere",
    () =>
      Effect.gen(function*() {
        const server = yield* httpJobs(waitedScript)
        const gate = yield* gateBefore(server.url, { Authorization: keys.literal, "X-Job-Key": keys.named })
        const headers = { Authorization: keys.literal, "X-Job-Key": "{env:JOB_KEY}" }
        const { box, llm } = yield* boxWith({
          jobs: { type: "remote", url: gate.url, headers, oauth: false },
          source: fromOpencode
        })
        const said = yield* run(box, "wait for the job")
        const turns = withoutRepeats(yield* llm.turns)
        assert.strictEqual(turns.length, 3, said)
        assert.include(turns.map(lastToolResult).at(-1), "**Status:** completed")
        assert.strictEqual(server.calls("job"), looks.job)
        assert.strictEqual(gate.refused(), 0)
        assert.notMatch(JSON.stringify(yield* llm.requests) + said, /s3cret/)
        yield* noneLeft(box)
      }),
    120_000
  )

  it.scopedLive("keeps an attach open beyond opencode's limit for a call", () =>
    Effect.gen(function*() {
      const { jobs, server } = yield* local
      const { box, llm } = yield* boxWith({ jobs, source: fromOpencode, extra: { timeout: 10_000 } })
      yield* run(box, "wait for the slow one")
      const turns = withoutRepeats(yield* llm.turns)
      assert.include(turns.map(lastToolResult).at(-1), "**Status:** completed")
      assert.strictEqual(server.calls("slow"), looks.slow)
      assert.isAbove((turns[2]?.at ?? 0) - (turns[1]?.at ?? 0), 10_000)
      assert.strictEqual(turns.length, 3)
    }), 180_000)
})

describe("the end of opencode in the middle of a wait", () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
    it.scopedLive(`${signal} leaves neither the command nor its server behind`, () =>
      Effect.gen(function*() {
        const { jobs, server } = yield* local
        const { box, llm } = yield* boxWith({ jobs, source: fromOpencode })
        const { args, command } = opencode()
        const running = yield* startIn(box, { command, args: [...args, "run"], stdin: "start one that never ends" })
        yield* llm.awaitRequest((request) => lastToolResult(request).includes("Sentinel Started"), "60 seconds")
        yield* eventually(
          Effect.sync(() => server.calls("never") >= 3 || undefined),
          "30 seconds",
          () => "the sentinel does not poll"
        )
        assert.strictEqual(server.pids().length, 2)
        yield* running.stop(signal)
        yield* noneLeft(box)
      }), 180_000)
  }
})
