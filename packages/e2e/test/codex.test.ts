import { assert, describe, it } from "@effect/vitest"
import {
  type CodexBox,
  type CodexServer,
  makeCodexBox,
  processesInCodex,
  serveCodex,
  startCodexExec,
  threadOf,
  writeCodexConfig
} from "@gcszhn/mcp-sentinel-testkit/CodexBox"
import { eventually } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import { lastToolResult } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { scriptedResponses } from "@gcszhn/mcp-sentinel-testkit/ScriptedResponses"
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { codex } from "../src/Binaries.js"
import { unpackCli } from "../src/cli.js"
import {
  costsThreeRequests,
  leavesNothing,
  looks,
  mcpName,
  waitedJobs,
  waitingAgent,
  withoutRepeats
} from "../src/waiting.js"

/**
 * `file`: the server is in a file of its own too; `codex`: in Codex's configuration only; `hidden`: so too, and Codex
 * keeps its CODEX_HOME from the command.
 */
type Mode = "file" | "codex" | "hidden"

/** Codex with a job server and the packed command, in a CODEX_HOME that is not the default one. */
const boxWith = Effect.fnUntraced(function*(mode: Mode, extra: CodexServer = {}) {
  const llm = yield* scriptedResponses(waitingAgent(mcpName))
  const box = yield* makeCodexBox({ llm, env: { JOB_TOKEN: "s3cret" } })
  const cli = unpackCli(join(box.root, "cli"))
  const server = yield* waitedJobs
  const entry = { command: server.command, args: server.args }
  const file = join(box.root, "servers.json")
  writeFileSync(file, JSON.stringify({ mcpServers: { jobs: entry } }))
  const source = mode === "file" ? ["--harness", "custom", "--mcp-config", file] : ["--harness", "codex"]
  writeCodexConfig(box, llm, {
    jobs: { ...entry, env_vars: ["JOB_TOKEN"] },
    sentinel: {
      command: cli.command,
      args: [...cli.args, "mcp", ...source],
      // else Codex asks the model without the tools of a server that needs more than a second to start
      required: true,
      env_vars: mode === "hidden" ? ["JOB_TOKEN"] : ["CODEX_HOME", "JOB_TOKEN"],
      tools: {
        mcp_sentinel_poll: { approval_mode: "approve" },
        mcp_sentinel_set_notifier_commands: { approval_mode: "approve" }
      },
      ...extra
    }
  })
  return { box, llm, server }
})

const run = Effect.fnUntraced(function*(box: CodexBox, prompt: string) {
  const running = yield* startCodexExec(box, codex(), prompt)
  const { code } = yield* running.ended
  assert.strictEqual(code, 0, running.stdout() + running.stderr())
  return running.stdout()
})

const noneLeft = (box: CodexBox) => leavesNothing(processesInCodex(box), "codex")

describe("codex exec with the packed command", () => {
  for (const mode of ["file", "codex", "hidden"] as const) {
    it.scopedLive(
      `costs three requests for a wait, none while it waits; by hand one for every look (${mode})`,
      () =>
        Effect.gen(function*() {
          const { box, llm, server } = yield* boxWith(mode)
          yield* costsThreeRequests({ run: (prompt) => run(box, prompt), requests: llm.requests, server })
          yield* noneLeft(box)
        }),
      120_000
    )
  }

  it.scopedLive(
    "tells who calls: the thread of Codex, and a run that ends with the turn",
    () =>
      Effect.gen(function*() {
        const { box, llm } = yield* boxWith("codex")
        const said = yield* run(box, "tell my session")
        const thread = threadOf(said)
        assert.isString(thread)
        const [, acknowledged, listed, offered] = (yield* llm.turns).map(lastToolResult)
        assert.include(acknowledged, "one-shot run (codex exec)")
        assert.match(listed ?? "", /sentinel_[0-9a-f]{32}/)
        assert.include(offered, `codex queue --thread ${thread} --message {}`)
        assert.include(offered, `${thread} {}`)
        yield* noneLeft(box)
      }),
    120_000
  )

  it.scopedLive("attaches again before Codex cuts the call", () =>
    Effect.gen(function*() {
      const { box, llm, server } = yield* boxWith("codex", { tool_timeout_sec: 8 })
      yield* run(box, "wait for the slow one")
      const results = withoutRepeats(yield* llm.turns).map(lastToolResult)
      assert.notInclude(results.join("\n"), "timed out awaiting")
      assert.include(results.at(-2), "**Status:** polling")
      assert.include(results.at(-1), "**Status:** completed")
      assert.strictEqual(server.calls("slow"), looks.slow)
      assert.isAtMost(results.length, 5)
    }), 120_000)

  it.scopedLive("gives a server the variables that Codex gives it, and no others", () =>
    Effect.gen(function*() {
      const { box, server } = yield* boxWith("codex")
      yield* run(box, "tell my session")
      const [first = [], second = [], ...more] = server.events().flatMap((event) =>
        event.type === "start" ? [event.env] : []
      )
      assert.deepStrictEqual(more, [])
      assert.include(first, "JOB_TOKEN")
      assert.notInclude(first, "CODEX_HOME")
      const given = (names: ReadonlyArray<string>) =>
        names.filter((name) => !name.startsWith("MCP_SENTINEL")).toSorted()
      assert.deepStrictEqual(given(second), given(first))
    }), 120_000)
})

describe("the end of codex in the middle of a wait", () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
    it.scopedLive(`${signal} leaves neither the command nor its server behind`, () =>
      Effect.gen(function*() {
        const { box, llm, server } = yield* boxWith("codex")
        const running = yield* startCodexExec(box, codex(), "start one that never ends")
        yield* llm.awaitRequest((request) => lastToolResult(request).includes("Sentinel Started"), "60 seconds")
        yield* eventually(
          Effect.sync(() => server.calls("never") >= 3 || undefined),
          "30 seconds",
          () => "the sentinel does not poll"
        )
        assert.strictEqual(server.pids().length, 2)
        const program = (yield* processesInCodex(box)).find(({ command }) => /bin\/codex exec/.test(command))
        assert.isDefined(program)
        process.kill(program?.pid ?? NaN, signal)
        yield* running.ended
        yield* noneLeft(box)
      }), 120_000)
  }
})

describe("an idle thread of codex", () => {
  it.scopedLive("is woken through `codex queue` when the job is done", () =>
    Effect.gen(function*() {
      const { box, llm, server } = yield* boxWith("codex")
      const app = yield* serveCodex(box, codex())
      const thread = yield* app.startThread
      yield* app.startTurn(thread, "let me be woken")
      yield* eventually(
        Effect.sync(() => app.notifications().includes("turn/completed") || undefined),
        "60 seconds",
        () => `the turn does not end: ${app.notifications().join(" ")}\n${app.process.stderr()}`
      )
      const idle = (yield* llm.requests).length
      assert.strictEqual(idle, 2)
      const woken = yield* llm.awaitRequest(/## Sentinel Complete/, "60 seconds")
      assert.strictEqual(server.calls("woken"), looks.woken)
      assert.include(woken.messages.map(({ text }) => text), "let me be woken", "the same thread")
      assert.strictEqual((yield* llm.requests).length, idle + 1)
    }), 120_000)
})
