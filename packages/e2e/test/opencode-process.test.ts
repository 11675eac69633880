import { assert, describe, it } from "@effect/vitest"
import { eventually, processesIn } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import { call, lastToolResult, on, say } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { makeOpencodeBox, runOpencode, serveOpencode, writeConfig } from "@gcszhn/mcp-sentinel-testkit/OpencodeBox"
import { scriptedLlm } from "@gcszhn/mcp-sentinel-testkit/ScriptedLlm"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { opencode } from "../src/Binaries.js"
import { jobs, jobServersIn } from "../src/jobs.js"
import { unpackPlugin } from "../src/opencodePlugin.js"

const poll = (tool: "short" | "never") =>
  call("mcp_sentinel_poll", {
    server: "jobs",
    tool,
    interval: 1000,
    until: { path: "state", is: "eq", value: "done" }
  })

const script = [
  on(
    "wait in a one-shot run",
    poll("short"),
    (request) => call("mcp_sentinel_attach", { id: /sentinel_[0-9a-f]+/.exec(lastToolResult(request))?.[0] }),
    (request) => say(`REPLY ${lastToolResult(request)}`)
  ),
  on("start one that never ends", poll("never"), (request) => say(`REPLY ${lastToolResult(request)}`))
]

const boxWith = Effect.fnUntraced(function*(plugin: boolean) {
  const llm = yield* scriptedLlm(script)
  const box = yield* makeOpencodeBox({ llm, config: {} })
  const entry = plugin ? [unpackPlugin(join(box.root, "plugin"))] : []
  const server = yield* jobs({ short: 4, never: 0 })
  writeConfig(box, llm, { plugin: entry, mcp: { jobs: { type: "local", command: [server.command, ...server.args] } } })
  return { box, llm }
})

describe("opencode run, which ends with the turn", () => {
  it.scopedLive("is told to attach, and attach brings the result within the turn", () =>
    Effect.gen(function*() {
      const { box, llm } = yield* boxWith(true)
      const run = yield* runOpencode(box, opencode(), "wait in a one-shot run")
      assert.strictEqual(run.code, 0, run.stderr)
      assert.include(run.stdout, "completed")
      const turns = yield* llm.turns
      const acknowledgement = turns[1] === undefined ? "" : lastToolResult(turns[1])
      assert.include(acknowledgement, "opencode run")
      assert.include(acknowledgement, "mcp_sentinel_attach")
      assert.strictEqual(turns.length, 3)
      assert.deepStrictEqual(yield* processesIn(box), [])
    }), 120_000)
})

describe("a signal to opencode serve", () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it.scopedLive(`${signal} ends opencode and every server that the plugin started`, () =>
      Effect.gen(function*() {
        const { box } = yield* boxWith(true)
        const oc = yield* serveOpencode(box, opencode())
        const session = yield* oc.createSession()
        yield* oc.ask(session.id, "start one that never ends")
        assert.strictEqual((yield* jobServersIn(box)).length, 2)
        const sent = performance.now()
        const ended = yield* oc.process.stop(signal)
        assert.strictEqual(ended.signal, signal)
        assert.isBelow(performance.now() - sent, 4_000)
        yield* eventually(
          Effect.map(processesIn(box), (all) => all.length === 0 ? true : undefined),
          "3 seconds",
          () => "a process outlived opencode"
        )
      }), 120_000)
  }
})

/** ms until the tools are listed, which waits for every plugin. */
const startUp = (plugin: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const { box } = yield* boxWith(plugin)
    const oc = yield* serveOpencode(box, opencode())
    const began = performance.now()
    yield* oc.toolIds
    return performance.now() - began
  }))

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN

describe("the start of opencode", () => {
  it.live("is not made noticeably longer by the plugin", () =>
    Effect.gen(function*() {
      const rounds = yield* Effect.forEach(
        [1, 2, 3],
        () => Effect.all({ without: startUp(false), with: startUp(true) })
      )
      const bare = median(rounds.map((round) => round.without))
      const loaded = median(rounds.map((round) => round.with))
      yield* Effect.logInfo(
        `first instance of opencode: ${Math.round(bare)} ms without, ${
          Math.round(loaded)
        } ms with the plugin (median of 3)`
      )
      assert.isBelow(loaded - bare, 2_000)
    }), 240_000)
})
