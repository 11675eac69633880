import { assert, describe, it } from "@effect/vitest"
import type { LlmRequest, Step } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { call, callAll, lastToolResult, on, say } from "@gcszhn/mcp-sentinel-testkit/Llm"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { eventually, type Mode, world } from "../../src/dsh/Inproc.js"

const waitFor = (id: string) => ({
  server: "ci",
  tool: "get_status",
  args: { id },
  interval: 1000,
  until: { path: "status", is: "eq", value: "done" }
})

const sentinelIn = (text: string) => /sentinel_[0-9a-f]{32}/.exec(text)?.[0] ?? "no id"

/** A tool call as a model makes it: directly, or from a program where dsh is in code mode. */
const calling = (mode: Mode, tool: string, args: (request: LlmRequest) => unknown): Step => (request) =>
  mode === "native"
    ? call(tool, args(request))
    : call("run_code", {
      code: `return await tools.${tool}(${JSON.stringify(args(request))})`,
      description: "one tool call"
    })

const texts = (request: LlmRequest) => request.messages.map((message) => message.text).join("\n")

const seconds = 60_000

describe.each([["native", "host"], ["code", "host"], ["native", "preset"], ["code", "preset"]] as const)(
  "%s mode, MCP client of the %s",
  (mode, client) => {
    it.scopedLive("polls in the background and wakes the idle agent once", () =>
      Effect.gen(function*() {
        const { llm, newAgent, say: user, server } = yield* world({
          mode,
          client,
          rules: [
            on("build it", calling(mode, "mcp_sentinel_poll", () => waitFor("a")), say("FIRST")),
            on("Sentinel Complete", say("SECOND"))
          ]
        })
        server.set("a", { status: "running" })
        const { agent } = yield* newAgent("s1")
        yield* user(agent, "build it")
        const submitted = yield* llm.turns
        assert.strictEqual(submitted.length, 2)
        assert.include(lastToolResult(submitted[1]!), "Sentinel Started")
        assert.include(lastToolResult(submitted[1]!), "running")

        yield* eventually("a second poll", () => server.events().filter(({ event }) => event === "status").length >= 2)
        assert.strictEqual((yield* llm.turns).length, 2, "no inference while waiting")
        server.set("a", { status: "done", url: "https://ci/42" })
        const woken = yield* llm.awaitRequest("Sentinel Complete", "10 seconds")
        assert.include(woken.messages.at(-1)?.text, "https://ci/42")
        yield* Effect.promise(() => agent.whenIdle())
        yield* Effect.sleep("1500 millis")
        assert.strictEqual((yield* llm.turns).length, 3)
      }), seconds)

    it.scopedLive("attaches, reads and cancels", () =>
      Effect.gen(function*() {
        const first = on(
          "attach",
          calling(mode, "mcp_sentinel_poll", () => waitFor("a")),
          calling(mode, "mcp_sentinel_attach", (request) => ({ id: sentinelIn(lastToolResult(request)) })),
          calling(mode, "mcp_sentinel_read", (request) => ({ id: sentinelIn(lastToolResult(request)) })),
          say("READ")
        )
        const second = on(
          "cancel",
          calling(mode, "mcp_sentinel_poll", () => waitFor("b")),
          calling(mode, "mcp_sentinel_status", (request) => ({
            action: "cancel",
            id: sentinelIn(lastToolResult(request))
          })),
          calling(mode, "mcp_sentinel_status", (request) => ({ id: sentinelIn(lastToolResult(request)) })),
          say("CANCELLED")
        )
        const { llm, newAgent, say: user, server } = yield* world({ mode, client, rules: [first, second] })
        server.set("a", { status: "running" })
        server.set("b", { status: "running" })
        const { agent } = yield* newAgent("s1")
        const turn = yield* Effect.fork(user(agent, "attach"))
        yield* eventually("a second poll", () => server.events().filter(({ event }) => event === "status").length >= 2)
        assert.strictEqual((yield* llm.turns).length, 2, "attach is blocking")
        server.set("a", { status: "done" })
        yield* Fiber.join(turn)
        const [, , attached, read] = yield* llm.turns
        assert.include(lastToolResult(attached!), "Sentinel Complete")
        assert.include(lastToolResult(read!), "\"status\":\"done\"")

        yield* user(agent, "cancel")
        yield* Effect.sleep("1500 millis")
        const all = yield* llm.turns
        assert.include(lastToolResult(all.at(-1)!), "cancelled")
        assert.strictEqual(all.length, 8, "neither end sent a notice")
        const polls = server.events().filter(({ id }) => id === "b").length
        yield* Effect.sleep("1500 millis")
        assert.strictEqual(
          server.events().filter(({ id }) => id === "b").length,
          polls,
          "a cancelled sentinel is quiet"
        )
      }), seconds)

    it.scopedLive("outlives a crash of the server, which dsh starts again", () =>
      Effect.gen(function*() {
        const { ctx, llm, newAgent, server, use } = yield* world({ mode, client, rules: [on("Sentinel", say("SEEN"))] })
        server.set("a", { status: "running" })
        const { agent } = yield* newAgent("s1")
        const args = waitFor("a")
        const poll = mode === "native"
          ? yield* use(agent, "mcp_sentinel_poll", args)
          : yield* use(agent, "run_code", {
            code: `return await tools.mcp_sentinel_poll(${JSON.stringify(args)})`,
            description: "poll"
          })
        assert.isFalse(poll.isError, poll.text)
        const [pid] = server.events().map((event) => event.pid)
        process.kill(pid!, "SIGKILL")
        yield* eventually("a poll of the new process", () =>
          server.events().some((event) => event.event === "status" && event.pid !== pid))
        server.set("a", { status: "done" })
        const woken = yield* llm.awaitRequest("Sentinel Complete", "15 seconds")
        assert.include(woken.messages.at(-1)?.text, "done")
        assert.isDefined(ctx.agents.get(agent.id))
      }), seconds)
  }
)

describe("names and permissions", () => {
  it.scopedLive(
    "finds an oddly named tool by its raw name, its public name and its sanitised name",
    () =>
      Effect.gen(function*() {
        const { ctx, newAgent, server, use } = yield* world()
        server.set("a", { status: "done" })
        const { agent } = yield* newAgent("s1")
        const hashed = ctx.tools.schemas(agent).map(({ name }) => name).find((name) => name.includes("job_status"))
        for (const tool of ["job.status/v2", hashed, "job_status_v2"]) {
          const reply = yield* use(agent, "mcp_sentinel_poll", { ...waitFor("a"), tool })
          assert.include(reply.text, "Sentinel Complete", `${tool}: ${reply.text}`)
        }
        const publicly = yield* use(agent, "mcp_sentinel_poll", {
          ...waitFor("a"),
          server: "mcp__ci",
          tool: "get_status"
        })
        assert.include(publicly.text, "Sentinel Complete")
      }),
    seconds
  )

  it.scopedLive("refuses what there is not, naming what there is", () =>
    Effect.gen(function*() {
      const { newAgent, server, use } = yield* world()
      const { agent } = yield* newAgent("s1")
      const noTool = yield* use(agent, "mcp_sentinel_poll", { ...waitFor("a"), tool: "get_statsu" })
      assert.isTrue(noTool.isError)
      assert.match(noTool.text, /^Error: (?!Error)/)
      assert.include(noTool.text, "get_status")
      const noServer = yield* use(agent, "mcp_sentinel_poll", { ...waitFor("a"), server: "cl" })
      assert.isTrue(noServer.isError)
      assert.include(noServer.text, "mcp__ci__get_status")
      assert.deepStrictEqual(server.events().filter(({ event }) => event === "status"), [])
    }), seconds)

  it.scopedLive(
    "refuses a tool that dsh keeps from the agent, and ends when dsh starts to deny it",
    () =>
      Effect.gen(function*() {
        const { ctx, newAgent, server, use } = yield* world()
        server.set("a", { status: "running" })
        const { agent } = yield* newAgent("s1")
        const free = yield* newAgent("s2")
        agent.ctx.tools.restrict({ deny: ["mcp__ci__get_status"] })
        const refused = yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
        assert.isTrue(refused.isError)
        assert.include(refused.text, "restriction")

        const allowed = yield* use(free.agent, "mcp_sentinel_poll", waitFor("a"))
        assert.isFalse(allowed.isError, allowed.text)
        ctx.tools.guard((exec) => exec.name === "mcp__ci__get_status" ? "not on a Sunday" : undefined)
        const ended = yield* use(free.agent, "mcp_sentinel_attach", { id: allowed.id })
        assert.include(ended.text, "not on a Sunday")
        assert.include(ended.text, "error")
      }),
    seconds
  )

  it.scopedLive("understands arguments and conditions that a model wrote as strings", () =>
    Effect.gen(function*() {
      const { newAgent, server, use } = yield* world()
      server.set("a", { status: "done" })
      const { agent } = yield* newAgent("s1")
      const reply = yield* use(agent, "mcp_sentinel_poll", {
        ...waitFor("a"),
        args: JSON.stringify({ id: "a" }),
        until: JSON.stringify({ path: "status", is: "eq", value: "done" })
      })
      assert.include(reply.text, "Sentinel Complete")
    }), seconds)
})

describe("failed calls", () => {
  it.scopedLive("says that a server had to be started again under a call", () =>
    Effect.gen(function*() {
      const { llm, newAgent, server, use } = yield* world({ rules: [on("Sentinel Complete", say("SEEN"))] })
      const { agent } = yield* newAgent("s1")
      server.set("a", { status: "running" })
      yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
      server.dieAt("a")
      yield* eventually("a new process", () => server.events().filter(({ event }) => event === "start").length === 2)
      server.set("a", { status: "done" })
      const woken = yield* llm.awaitRequest("Sentinel Complete", "15 seconds")
      assert.include(woken.messages.at(-1)?.text, "Server restarts")
    }), seconds)

  it.scopedLive(
    "goes on while the thing waited for does not exist yet, and reads the value of an error",
    () =>
      Effect.gen(function*() {
        const { llm, newAgent, server, use } = yield* world({ rules: [on("Sentinel", say("SEEN"))] })
        const { agent } = yield* newAgent("s1")
        const reply = yield* use(agent, "mcp_sentinel_poll", waitFor("later"))
        assert.include(reply.text, "no job later yet")
        assert.include(reply.text, "polling")
        server.set("later", { status: "done" })
        yield* llm.awaitRequest("Sentinel Complete", "10 seconds")
      }),
    seconds
  )

  it.scopedLive("ends at once on wrong arguments", () =>
    Effect.gen(function*() {
      const { newAgent, use } = yield* world()
      const { agent } = yield* newAgent("s1")
      const reply = yield* use(agent, "mcp_sentinel_poll", { ...waitFor("a"), args: { id: 7 } })
      assert.include(reply.text, "Sentinel Failed")
      assert.include(reply.text, "-32602")
    }), seconds)

  it.scopedLive(
    "tolerates a server that dsh has given up until max_errors, then says what is wrong",
    () =>
      Effect.gen(function*() {
        const { newAgent, server, use } = yield* world()
        server.set("a", { status: "running" })
        const { agent } = yield* newAgent("s1")
        const reply = yield* use(agent, "mcp_sentinel_poll", { ...waitFor("a"), max_errors: 2 })
        server.breakIt(true)
        process.kill(server.events()[0]!.pid, "SIGKILL")
        const ended = yield* use(agent, "mcp_sentinel_attach", { id: reply.id })
        assert.match(ended.text, /Sentinel Failed/)
        assert.match(ended.text, /Not connected|does not have this tool/)
        server.breakIt(false)
      }),
    seconds
  )
})

describe("notices", () => {
  it.scopedLive("join the running turn when the agent is busy", () =>
    Effect.gen(function*() {
      const { llm, newAgent, say: user, server, use } = yield* world({
        rules: [
          on("Sentinel Complete", say("BOTH")),
          on("work", call("mcp_sentinel_status", { action: "list" }), () =>
            Effect.delay(Effect.succeed(say("WORKED")), Duration.seconds(3)))
        ]
      })
      server.set("a", { status: "running" })
      const { agent } = yield* newAgent("s1")
      yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
      const turn = yield* Effect.fork(user(agent, "work"))
      yield* llm.awaitRequest((request) =>
        request.messages.at(-1)?.role === "tool", "10 seconds")
      server.set("a", { status: "done" })
      yield* Fiber.join(turn)
      const turns = yield* llm.turns
      assert.strictEqual(turns.length, 3)
      const types = agent.session.events.map((event) =>
        event.type
      )
      assert.strictEqual(types.filter((type) => type === "turn/start").length, 1, types.join(" "))
    }), seconds)

  it.scopedLive("tell several ends at once in one message", () =>
    Effect.gen(function*() {
      const { llm, newAgent, server, use } = yield* world({ rules: [on("Sentinel Complete", say("ALL"))] })
      const jobs = ["a", "b", "c"]
      for (const job of jobs) server.set(job, { status: "running" })
      const { agent } = yield* newAgent("s1")
      const polls = yield* Effect.forEach(jobs, (job) => use(agent, "mcp_sentinel_poll", waitFor(job)), {
        concurrency: "unbounded"
      })
      for (const job of jobs) server.set(job, { status: "done" })
      const woken = yield* llm.awaitRequest("Sentinel Complete", "10 seconds")
      yield* Effect.sleep("1500 millis")
      for (const { id } of polls) assert.include(woken.messages.at(-1)?.text, id)
      assert.strictEqual((yield* llm.turns).length, 1)
    }), seconds)

  it.scopedLive("that a cancelled turn threw away ride on the next prompt", () =>
    Effect.gen(function*() {
      const { llm, newAgent, say: user, server, use } = yield* world({
        rules: [
          on("block", call("mcp_sentinel_poll", waitFor("b")), (request) =>
            call("mcp_sentinel_attach", { id: sentinelIn(lastToolResult(request)) })),
          on("and now", say("NOW"))
        ]
      })
      server.set("a", { status: "running" })
      server.set("b", { status: "running" })
      const { agent } = yield* newAgent("s1")
      const { id } = yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
      const turn = yield* Effect.fork(user(agent, "block"))
      yield* llm.awaitRequest((request) =>
        lastToolResult(request).includes("Sentinel Started"), "10 seconds")
      server.set("a", { status: "done" })
      yield* eventually("the notice in the inbox", () =>
        agent.inbox.hasPending)
      const cancelledAt = Date.now()
      agent.cancel({ kind: "user" })
      yield* Fiber.join(turn)
      assert.isBelow(Date.now() - cancelledAt, 1000, "a blocking attach settles at once")
      yield* eventually("the notice again", () => agent.inbox.hasPending)
      const before = (yield* llm.turns).length
      yield* Effect.sleep("500 millis")
      assert.strictEqual((yield* llm.turns).length, before, "a user's Stop is not answered by a new turn")
      yield* user(agent, "and now")
      assert.include(texts((yield* llm.turns).at(-1)!), id)
    }), seconds)

  it.scopedLive("of a subagent's sentinel reach the agent that started it", () =>
    Effect.gen(function*() {
      const { llm, newAgent, server, use } = yield* world({ rules: [on("Sentinel Complete", say("PARENT KNOWS"))] })
      server.set("a", { status: "running" })
      const parent = yield* newAgent("parent")
      const child = yield* newAgent("child", parent.agent)
      const reply = yield* use(child.agent, "mcp_sentinel_poll", waitFor("a"))
      assert.include(reply.text, "subagent")
      yield* Effect.promise(() => child.dispose())
      server.set("a", { status: "done" })
      const woken = yield* llm.awaitRequest("Sentinel Complete", "10 seconds")
      assert.include(woken.messages.at(-1)?.text, "`child`")
      yield* Effect.promise(() => parent.agent.whenIdle())
      assert.include(JSON.stringify(parent.agent.session.events), "PARENT KNOWS")
    }), seconds)

  it.scopedLive("whose agent is gone are logged, and the outcome stays readable", () =>
    Effect.gen(function*() {
      const { llm, logs, newAgent, server, use } = yield* world()
      server.set("a", { status: "running" })
      const gone = yield* newAgent("gone")
      const other = yield* newAgent("other")
      const { id } = yield* use(gone.agent, "mcp_sentinel_poll", waitFor("a"))
      yield* Effect.promise(() => gone.dispose())
      server.set("a", { status: "done" })
      yield* eventually("a line in the log", () => logs.some((line) => line.includes(id)))
      const status = yield* use(other.agent, "mcp_sentinel_status", { id })
      assert.include(status.text, "completed")
      assert.strictEqual((yield* llm.turns).length, 0)
    }), seconds)
})

describe("a blocking attach", () => {
  it.scopedLive("does not hold up the other calls of its step", () =>
    Effect.gen(function*() {
      const { llm, newAgent, say: user, server, use } = yield* world({
        rules: [
          on("both", (request) => {
            const id = sentinelIn(texts(request))
            return callAll(
              { name: "mcp_sentinel_attach", input: { id } },
              { name: "mcp_sentinel_status", input: { action: "cancel", id } }
            )
          }, say("DONE"))
        ]
      })
      server.set("a", { status: "running" })
      const { agent } = yield* newAgent("s1")
      const { id } = yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
      yield* user(agent, `both ${id}`)
      assert.strictEqual((yield* llm.turns).length, 2)
    }), seconds)
})

describe("when the plugin goes", () => {
  it.scopedLive(
    "every sentinel stops, a call in flight is cancelled, and a waiting attach returns",
    () =>
      Effect.gen(function*() {
        const { ctx, disposePlugin, logs, newAgent, server, use } = yield* world()
        server.set("a", { status: "running" })
        const { agent } = yield* newAgent("s1")
        const { id } = yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
        yield* use(agent, "mcp_sentinel_poll", { ...waitFor("a"), tool: "hang", args: {} })
        const attach = yield* Effect.fork(use(agent, "mcp_sentinel_attach", { id }))
        yield* eventually("the hanging call", () => server.events().some(({ event }) => event === "hang"))
        yield* Effect.sleep("200 millis")
        const from = Date.now()
        yield* Effect.promise(disposePlugin)
        assert.isBelow(Date.now() - from, 2000)
        const attached = yield* Fiber.join(attach)
        assert.isTrue(attached.isError)
        assert.include(attached.text, "disabled or reconfigured")
        yield* eventually("the cancelled call", () => server.events().some(({ event }) => event === "hang-cancelled"))
        assert.deepStrictEqual(ctx.tools.schemas().filter(({ name }) => name.startsWith("mcp_sentinel")), [])
        const polls = server.events().length
        yield* Effect.sleep("2500 millis")
        assert.strictEqual(server.events().length, polls)
        assert.notInclude(logs.join("\n"), "inactive context")
      }),
    seconds
  )
})

describe("dsh's job list", () => {
  it.scopedLive("shows a sentinel, and announces its end instead of the sentinel", () =>
    Effect.gen(function*() {
      const { llm, newAgent, server, use } = yield* world({
        jobs: true,
        config: { jobs: true },
        rules: [on("background job", say("SEEN"))]
      })
      server.set("a", { status: "running" })
      const { agent } = yield* newAgent("s1")
      const reply = yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
      assert.include(reply.text, "job_list")
      const listed = yield* use(agent, "job_list", {})
      assert.match(listed.text, /^sentinel-1 \[sentinel\] running — ci\/get_status/)
      server.set("a", { status: "done", url: "https://ci/42" })
      yield* llm.awaitRequest("sentinel-1", "10 seconds")
      yield* Effect.sleep("1 second")
      assert.strictEqual((yield* llm.turns).length, 1)
      const output = yield* use(agent, "job_output", { job_id: "sentinel-1" })
      assert.include(output.text, "Sentinel Complete")
      assert.include(output.text, "https://ci/42")
    }), seconds)

  it.scopedLive(
    "can kill a sentinel; one that was cancelled or attached to is not announced",
    () =>
      Effect.gen(function*() {
        const { llm, newAgent, server, use } = yield* world({ jobs: true, config: { jobs: true } })
        for (const job of ["a", "b", "c"]) server.set(job, { status: "running" })
        const { agent } = yield* newAgent("s1")
        const killed = yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
        yield* use(agent, "job_kill", { job_id: "sentinel-1" })
        const status = yield* use(agent, "mcp_sentinel_status", { id: killed.id })
        assert.include(status.text, "cancelled")

        const cancelled = yield* use(agent, "mcp_sentinel_poll", waitFor("b"))
        yield* use(agent, "mcp_sentinel_status", { action: "cancel", id: cancelled.id })
        const attached = yield* use(agent, "mcp_sentinel_poll", waitFor("c"))
        server.set("c", { status: "done" })
        assert.include((yield* use(agent, "mcp_sentinel_attach", { id: attached.id })).text, "Sentinel Complete")
        yield* Effect.sleep("500 millis")
        const listed = yield* use(agent, "job_list", {})
        assert.match(listed.text, /sentinel-1 \[sentinel\] killed/)
        assert.match(listed.text, /sentinel-2 \[sentinel\] killed/)
        assert.match(listed.text, /sentinel-3 \[sentinel\] completed/)
        assert.strictEqual((yield* llm.turns).length, 0)
      }),
    seconds
  )

  it.scopedLive("is left alone unless the setting is on", () =>
    Effect.gen(function*() {
      const { newAgent, server, use } = yield* world({ jobs: true })
      server.set("a", { status: "running" })
      const { agent } = yield* newAgent("s1")
      yield* use(agent, "mcp_sentinel_poll", waitFor("a"))
      assert.include((yield* use(agent, "job_list", {})).text, "no background jobs")
    }), seconds)
})

describe("settings", () => {
  it.scopedLive("refuses a setting that it does not know, or of the wrong type", () =>
    Effect.gen(function*() {
      for (const config of [{ jobs: "yes" }, { jbos: true }]) {
        const failed = yield* Effect.exit(Effect.scoped(world({ config })))
        assert.isTrue(Exit.isFailure(failed), JSON.stringify(config))
      }
    }), seconds)
})

describe("what the agent pays", () => {
  it.scopedLive(
    "is two inferences and one to report with the sentinel, and one a look without",
    () =>
      Effect.gen(function*() {
        const looks = 6
        const byHand = on(
          "by hand",
          (request) => lastToolResult(request).includes("done") ? say("DONE") : call("mcp__ci__get_status", { id: "a" })
        )
        const { llm, newAgent, say: user, server } = yield* world({
          rules: [
            byHand,
            on("with the sentinel", call("mcp_sentinel_poll", waitFor("b")), say("WAITING")),
            on("Sentinel Complete", say("DONE"))
          ]
        })
        server.set("a", { status: "running" })
        server.set("b", { status: "running" })
        const one = yield* newAgent("by-hand")
        const hand = yield* Effect.fork(user(one.agent, "by hand"))
        yield* eventually(`${looks} looks`, () => server.events().filter(({ id }) => id === "a").length >= looks)
        server.set("a", { status: "done" })
        yield* Fiber.join(hand)
        const handTurns = (yield* llm.turns).length

        const two = yield* newAgent("with-sentinel")
        yield* user(two.agent, "with the sentinel")
        yield* eventually("three looks", () => server.events().filter(({ id }) => id === "b").length >= 3)
        server.set("b", { status: "done" })
        yield* llm.awaitRequest("Sentinel Complete", "10 seconds")
        yield* Effect.promise(() => two.agent.whenIdle())
        const sentinelTurns = (yield* llm.turns).length - handTurns
        assert.isAtLeast(handTurns, looks + 1)
        assert.isAtMost(sentinelTurns, 3)
      }),
    seconds
  )
})
