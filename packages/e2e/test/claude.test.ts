import { assert, describe, it } from "@effect/vitest"
import {
  claudeLlm,
  type ClaudeServer,
  makeClaudeBox,
  sessionOf,
  startClaudePrint,
  writeClaudeServers
} from "@gcszhn/mcp-sentinel-testkit/ClaudeBox"
import { eventually, type HostBox, processesIn } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import { lastToolResult, sinceUser } from "@gcszhn/mcp-sentinel-testkit/Llm"
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { claude } from "../src/Binaries.js"
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

/** Where the job server is known: in a file of the command's own, in `.mcp.json`, or in the user's `~/.claude.json`. */
type Mode = "file" | "project" | "user"

const allowed = ["--allowedTools", "mcp__sentinel,mcp__jobs"]

/** Claude Code with a job server and the packed command. */
const boxWith = Effect.fnUntraced(function*(mode: Mode, extra: ClaudeServer = {}) {
  const llm = yield* claudeLlm(waitingAgent(mcpName))
  const box = yield* makeClaudeBox({ llm })
  const cli = unpackCli(join(box.root, "cli"))
  const server = yield* waitedJobs
  const jobs = { command: server.command, args: server.args }
  const file = join(box.root, "servers.json")
  writeFileSync(file, JSON.stringify({ mcpServers: { jobs } }))
  const source = mode === "file" ? ["--harness", "custom", "--mcp-config", file] : ["--harness", "claude-code"]
  const sentinel = {
    command: cli.command,
    args: [...cli.args, "mcp", ...source],
    // else `claude -p` asks the model without the tools of a server that is still starting
    alwaysLoad: true,
    ...extra
  }
  writeClaudeServers(box, mode === "user" ? { user: { jobs, sentinel } } : { project: { jobs, sentinel } })
  return { box, llm, server }
})

const run = Effect.fnUntraced(function*(box: HostBox, prompt: string) {
  const running = yield* startClaudePrint(box, claude(), prompt, ...allowed)
  const { code } = yield* running.ended
  assert.strictEqual(code, 0, running.stdout() + running.stderr())
  return running.stdout()
})

const noneLeft = (box: HostBox) => leavesNothing(processesIn(box), "claude")

describe("claude -p with the packed command", () => {
  for (const mode of ["file", "project", "user"] as const) {
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
    "tells who calls: the session of Claude Code, and a run that ends with the turn",
    () =>
      Effect.gen(function*() {
        const { box, llm } = yield* boxWith("project")
        const said = yield* run(box, "tell my session")
        const session = sessionOf(said)
        assert.isString(session)
        const [, acknowledged, listed, offered] = (yield* llm.turns).map(lastToolResult)
        assert.include(acknowledged, "one-shot run (claude -p)")
        assert.match(listed ?? "", /sentinel_[0-9a-f]{32}/)
        assert.include(offered, `claude -p --resume ${session} {}`)
        yield* noneLeft(box)
      }),
    120_000
  )

  it.scopedLive("attaches again before Claude Code cuts the call", () =>
    Effect.gen(function*() {
      const { box, llm, server } = yield* boxWith("project", { timeout: 8_000 })
      yield* run(box, "wait for the slow one")
      const results = withoutRepeats(yield* llm.turns).map(lastToolResult)
      assert.notInclude(results.join("\n"), "timed out")
      assert.include(results.at(-2), "**Status:** polling")
      assert.include(results.at(-1), "**Status:** completed")
      assert.strictEqual(server.calls("slow"), looks.slow)
      assert.isAtMost(results.length, 5)
    }), 120_000)
})

describe("the end of claude in the middle of a wait", () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
    it.scopedLive(`${signal} leaves neither the command nor its server behind`, () =>
      Effect.gen(function*() {
        const { box, llm, server } = yield* boxWith("project")
        const running = yield* startClaudePrint(box, claude(), "start one that never ends", ...allowed)
        yield* llm.awaitRequest((request) => lastToolResult(request).includes("Sentinel Started"), "60 seconds")
        yield* eventually(
          Effect.sync(() => server.calls("never") >= 3 || undefined),
          "30 seconds",
          () => "the sentinel does not poll"
        )
        assert.strictEqual(server.pids().length, 2)
        yield* running.stop(signal)
        yield* noneLeft(box)
      }), 120_000)
  }
})

describe("an idle session of claude", () => {
  it.scopedLive("gets the notice through `claude -p --resume` when the job is done", () =>
    Effect.gen(function*() {
      const { box, llm, server } = yield* boxWith("project")
      const prompt = { type: "user", message: { role: "user", content: "let me be woken" } }
      const running = yield* startClaudePrint(
        box,
        { ...claude(), talks: true },
        "--input-format",
        "stream-json",
        ...allowed
      )
      yield* running.write(`${JSON.stringify(prompt)}\n`)
      yield* eventually(
        Effect.sync(() => running.stdout().includes(`"type":"result"`) || undefined),
        "60 seconds",
        () => `the turn does not end:\n${running.stdout()}\n${running.stderr()}`
      )
      const idle = (yield* llm.turns).length
      assert.strictEqual(idle, 2)
      const woken = yield* llm.awaitRequest(/## Sentinel Complete/, "60 seconds")
      assert.strictEqual(server.calls("woken"), looks.woken)
      assert.strictEqual((yield* llm.turns).length, idle + 1)
      assert.deepStrictEqual(sinceUser(woken), [], "the notice is the last message")
      assert.include(woken.messages.map(({ text }) => text), "let me be woken", "the same session")
    }), 120_000)
})
