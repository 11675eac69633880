import { assert, describe, it } from "@effect/vitest"
import {
  bundlesOf,
  type DshBox,
  type DshEvent,
  dshLlm,
  makeDshBox,
  runDsh,
  serveDsh,
  writePatch
} from "@gcszhn/mcp-sentinel-testkit/DshBox"
import { eventually, processesIn, startIn } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import type { Llm, LlmRequest, Rule } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { call, lastToolResult, on, say } from "@gcszhn/mcp-sentinel-testkit/Llm"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dsh, pnpm, tarball } from "../src/Binaries.js"
import { type JobServer, jobServer } from "../src/dsh/JobServer.js"

const plugin = "@gcszhn/mcp-sentinel-deepseek-harness-plugin"

const waitFor = (id: string) => ({
  server: "ci",
  tool: "get_status",
  args: { id },
  interval: 1000,
  until: { path: "status", is: "eq", value: "done" }
})

const sentinelIn = (text: string) => /sentinel_[0-9a-f]{32}/.exec(text)?.[0] ?? "no id"

const clientRow = (server: JobServer) => ({
  insert: [{
    id: "mcp-ci",
    name: "@deepseek-ai/dsh-mcp-client",
    config: {
      serverName: "ci",
      transport: "stdio",
      command: server.command,
      args: server.args,
      failOnStartupError: true
    }
  }]
})

/** A box whose profile has the packed plugin, and one MCP server. */
const installed = Effect.fn("installed")(
  function*(profile: string, rules: ReadonlyArray<Rule>, env: Readonly<Record<string, string>> = {}) {
    const llm = yield* dshLlm(rules)
    const server = yield* jobServer
    const box = yield* makeDshBox({ llm, dsh: dsh(), pnpm: pnpm(), env })
    const added = yield* runDsh(box, "plugin", "--profile", profile, "add", tarball("deepseek-harness-plugin"))
    assert.strictEqual(added.code, 0, added.stdout + added.stderr)
    assert.notInclude(added.stdout + added.stderr, "peer dependencies")
    writePatch(box, profile, [clientRow(server)])
    return { llm, server, box }
  }
)

const waitAndReport = (mode: "native" | "code"): ReadonlyArray<Rule> => {
  const poll = mode === "native"
    ? call("mcp_sentinel_poll", waitFor("a"))
    : call("run_code", {
      code: `return await tools.mcp_sentinel_poll(${JSON.stringify(waitFor("a"))})`,
      description: "wait for the build"
    })
  return [
    on(
      "Sentinel Complete",
      (request) => say(`ANSWER: ${/https:\S+\/42/.exec(request.messages.at(-1)?.text ?? "")?.[0]}`)
    ),
    on("build it", poll, say("WAITING"))
  ]
}

const finishAfterPolls = (server: JobServer, id: string, polls: number) =>
  eventually(
    Effect.sync(() => server.events().filter((event) => event.id === id).length >= polls || undefined),
    "60 seconds",
    () => `fewer than ${polls} polls of ${id}`
  ).pipe(Effect.zipRight(Effect.sync(() => server.set(id, { status: "done", url: "https://ci.example/42" }))))

describe("the packed plugin in the headless profile", () => {
  it.scopedLive("is a row of the configuration after `dsh plugin add`, and leaves with `remove`", () =>
    Effect.gen(function*() {
      const { box } = yield* installed("headless", [])
      assert.include(bundlesOf(box, "headless"), plugin)
      const dump = yield* runDsh(box, "--profile", "headless", "--dump-config")
      assert.strictEqual(dump.code, 0, dump.stderr)
      assert.match(dump.stdout, new RegExp(`id: mcp-sentinel\\s+name: ['"]?${plugin}`))
      const removed = yield* runDsh(box, "plugin", "--profile", "headless", "remove", plugin)
      assert.strictEqual(removed.code, 0, removed.stderr)
      assert.notInclude(bundlesOf(box, "headless"), plugin)
    }))

  it.scopedLive.each(["native", "code"] as const)(
    "waits for the sentinel and prints the answer (%s mode)",
    (mode) =>
      Effect.gen(function*() {
        const { box, llm, server } = yield* installed("headless", waitAndReport(mode), { DSH_TOOLS_MODE: mode })
        server.set("a", { status: "running" })
        yield* Effect.fork(finishAfterPolls(server, "a", 3))
        const run = yield* runDsh(box, "--profile", "headless", "build it")
        assert.strictEqual(run.stdout.trim(), "ANSWER: https://ci.example/42", run.stderr)
        assert.strictEqual(run.code, 0)
        const turns = yield* llm.turns
        assert.strictEqual(turns.length, 3)
        assert.include(lastToolResult(turns[1]!), "stays open")
        const waited = turns[2]!.at - turns[1]!.at
        assert.isAbove(waited, 1500, "no inference while the job ran")
        assert.deepStrictEqual(yield* processesIn(box), [])
      })
  )

  it.scopedLive("waits for the sentinel of a subagent that is gone, and wakes the agent that started it", () =>
    Effect.gen(function*() {
      const delegate = { description: "watch", prompt: "watch the build", run_in_background: false }
      const { box, llm, server } = yield* installed("headless", [
        ...waitAndReport("native"),
        on("watch the build", call("mcp_sentinel_poll", waitFor("a")), say("CHILD IS DONE")),
        on("delegate", call("subagent", delegate), say("PARENT WAITS"))
      ])
      server.set("a", { status: "running" })
      yield* Effect.fork(finishAfterPolls(server, "a", 4))
      const run = yield* runDsh(box, "--profile", "headless", "delegate")
      assert.strictEqual(run.stdout.trim(), "ANSWER: https://ci.example/42", run.stderr)
      const turns = yield* llm.turns
      const woken = turns.at(-1)
      assert.include(woken?.messages.map(({ text }) => text) ?? [], "PARENT WAITS")
      assert.include(woken?.messages.at(-1)?.text, "started by your subagent")
      assert.include(turns.map(lastToolResult).join("\n"), "You are a subagent")
    }))

  it.scopedLive("tells the main agent, and not a subagent that rests in the background", () =>
    Effect.gen(function*() {
      const delegate = { description: "watch", prompt: "watch the build", run_in_background: true }
      const { box, llm, server } = yield* installed("headless", [
        ...waitAndReport("native"),
        on("watch the build", call("mcp_sentinel_poll", waitFor("a")), say("CHILD RESTS")),
        on("delegate", call("subagent", delegate), call("mcp_sentinel_poll", waitFor("b")), say("PARENT WAITS"))
      ])
      server.set("a", { status: "running" })
      server.set("b", { status: "running" })
      yield* Effect.fork(Effect.zipRight(finishAfterPolls(server, "a", 3), finishAfterPolls(server, "b", 3)))
      const run = yield* runDsh(box, "--profile", "headless", "delegate")
      assert.strictEqual(run.stdout.trim(), "ANSWER: https://ci.example/42", run.stderr)
      const read = (yield* llm.turns).at(-1)?.messages.map(({ text }) => text) ?? []
      assert.include(read, "PARENT WAITS")
      assert.strictEqual(read.join("\n").match(/## Sentinel Complete/g)?.length, 2)
      assert.include(read.join("\n"), "started by your subagent")
    }))

  it.scopedLive("ends with exit code 0 at once when nothing is pending", () =>
    Effect.gen(function*() {
      const { box, llm } = yield* installed("headless", [on("hello", say("HELLO"))])
      const run = yield* runDsh(box, "--profile", "headless", "hello")
      assert.strictEqual(run.stdout.trim(), "HELLO", run.stderr)
      assert.strictEqual(run.code, 0)
      assert.strictEqual((yield* llm.turns).length, 1)
    }))

  it.scopedLive("stops promptly on SIGTERM while a sentinel is pending, with its server", () =>
    Effect.gen(function*() {
      const { box, llm, server } = yield* installed("headless", waitAndReport("native"))
      server.set("a", { status: "running" })
      const running = yield* startHeadless(box, "build it")
      yield* llm.awaitRequest((request) => lastToolResult(request).includes("Sentinel Started"), "60 seconds")
      yield* Effect.sleep("1 second")
      const from = Date.now()
      yield* running.stop("SIGTERM")
      assert.isBelow(Date.now() - from, 5000)
      yield* eventually(
        Effect.map(processesIn(box), (left) => left.length === 0 || undefined),
        "5 seconds",
        () => "a process outlived dsh"
      )
    }))
})

const startHeadless = (box: DshBox, prompt: string) =>
  startIn(box, { command: box.dsh.command, args: [...box.dsh.args, "--profile", "headless", prompt] })

const ofType = (events: ReadonlyArray<DshEvent>, type: string) => events.filter((event) => event.type === type)

const turnEnds = (llm: Llm, count: number) =>
  eventually(
    Effect.map(llm.turns, (turns) => turns.length >= count || undefined),
    "30 seconds",
    () => `fewer than ${count} inferences`
  )

const afterTool = (text: string) => (request: LlmRequest) => lastToolResult(request).includes(text)

describe("the packed plugin in the web profile", () => {
  it.scopedLive("wakes the idle agent with a new inference, and lets a user stop an attach", () =>
    Effect.gen(function*() {
      const attach = on(
        "now block",
        call("mcp_sentinel_poll", waitFor("b")),
        (request) => call("mcp_sentinel_attach", { id: sentinelIn(lastToolResult(request)) })
      )
      const { box, llm, server } = yield* installed("web", [...waitAndReport("native"), attach])
      server.set("a", { status: "running" })
      server.set("b", { status: "running" })
      const web = yield* serveDsh(box)
      const session = yield* web.createSession

      yield* web.prompt(session, "build it")
      yield* turnEnds(llm, 2)
      const idle = yield* eventually(
        Effect.map(web.history(session), (events) => ofType(events, "turn/end").length === 1 ? events : undefined),
        "10 seconds",
        () => "the turn does not end in the web profile"
      )
      assert.strictEqual(ofType(idle, "turn/start").length, 1)
      yield* finishAfterPolls(server, "a", 3)
      const woken = yield* llm.awaitRequest("Sentinel Complete", "15 seconds")
      assert.include(woken.messages.map(({ text }) => text), "WAITING")
      yield* eventually(
        Effect.map(web.history(session), (events) => ofType(events, "turn/end").length === 2 || undefined),
        "10 seconds",
        () => "the woken turn does not end"
      )
      assert.include(JSON.stringify(yield* web.history(session)), "ANSWER: https://ci.example/42")

      yield* web.prompt(session, "now block")
      yield* llm.awaitRequest(afterTool("Sentinel Started"), "15 seconds")
      yield* Effect.sleep("1 second")
      const before = (yield* llm.turns).length
      const from = Date.now()
      yield* web.cancel(session)
      yield* eventually(
        Effect.map(web.history(session), (events) => ofType(events, "turn/end").length === 3 || undefined),
        "5 seconds",
        () => "the stopped turn does not end"
      )
      assert.isBelow(Date.now() - from, 3000)
      assert.strictEqual((yield* llm.turns).length, before, "a stopped turn asks the model nothing")
      server.set("b", { status: "done", url: "https://ci.example/42" })
      yield* eventually(
        Effect.map(llm.turns, (turns) => turns.length > before || undefined),
        "15 seconds",
        () => "the sentinel ended with the attach"
      )
      const { code } = yield* web.process.stop("SIGTERM")
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(yield* processesIn(box), [])
    }))

  it.scopedLive("joins a notice to the turn that is running", () =>
    Effect.gen(function*() {
      const slow = (text: string) => () => Effect.delay(Effect.succeed(say(text)), Duration.seconds(4))
      const { box, llm, server } = yield* installed("web", [
        on("Sentinel Complete", say("KNOWN")),
        on("busy", call("mcp_sentinel_poll", waitFor("a")), slow("WORKED"))
      ])
      server.set("a", { status: "running" })
      const web = yield* serveDsh(box)
      const session = yield* web.createSession
      yield* web.prompt(session, "busy")
      yield* llm.awaitRequest(afterTool("Sentinel Started"), "30 seconds")
      server.set("a", { status: "done", url: "https://ci.example/42" })
      yield* llm.awaitRequest("Sentinel Complete", "15 seconds")
      const events = yield* eventually(
        Effect.map(web.history(session), (all) => ofType(all, "turn/end").length === 1 ? all : undefined),
        "10 seconds",
        () => "the turn does not end"
      )
      assert.strictEqual(ofType(events, "turn/start").length, 1, "one turn, two messages")
      assert.strictEqual((yield* llm.turns).length, 3)
    }))

  it.scopedLive("stops when its row is disabled while dsh runs, and works when it is enabled again", () =>
    Effect.gen(function*() {
      const { box, llm, server } = yield* installed("web", waitAndReport("native"))
      server.set("a", { status: "running" })
      const web = yield* serveDsh(box)
      const session = yield* web.createSession
      yield* web.prompt(session, "build it")
      yield* turnEnds(llm, 2)
      writePatch(box, "web", [clientRow(server), { id: "mcp-sentinel", disabled: true }])
      yield* Effect.sleep("2500 millis")
      const polls = server.events().length
      yield* Effect.sleep("2500 millis")
      assert.strictEqual(server.events().length, polls, "polling goes on after the plugin was disabled")
      writePatch(box, "web", [clientRow(server)])
      yield* Effect.sleep("2 seconds")
      yield* web.prompt(session, "build it")
      yield* turnEnds(llm, 4)
      yield* finishAfterPolls(server, "a", polls + 1)
      yield* llm.awaitRequest("Sentinel Complete", "15 seconds")
    }))
})
