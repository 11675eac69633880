import { assert, layer } from "@effect/vitest"
import { definitions } from "@gcszhn/mcp-sentinel-core/Tools"
import { eventually, type HostBox } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import type { StdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import { call, callAll, lastToolResult, type LlmRequest, on, type Rule, say } from "@gcszhn/mcp-sentinel-testkit/Llm"
import type { Llm } from "@gcszhn/mcp-sentinel-testkit/Llm"
import {
  makeOpencodeBox,
  type OpencodeMessage,
  type OpencodeServer,
  serveOpencode,
  textOf,
  writeConfig
} from "@gcszhn/mcp-sentinel-testkit/OpencodeBox"
import { scriptedLlm } from "@gcszhn/mcp-sentinel-testkit/ScriptedLlm"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { opencode } from "../src/Binaries.js"
import { jobs, jobServersIn } from "../src/jobs.js"
import { unpackPlugin } from "../src/opencodePlugin.js"

const complete = /## Sentinel Complete/

/** Looks until each job is done; 0 is never. */
const looks = {
  long: 4,
  finished: 1,
  byHand: 4,
  voice: 3,
  sub: 4,
  busy: 3,
  left: 2,
  right: 2,
  deleted: 4,
  never: 0,
  attached: 5,
  later: 8,
  rules: 1,
  switched: 1,
  public: 1
}

const input = (tool: string, extra: Readonly<Record<string, unknown>> = {}) => ({
  server: "jobs",
  tool,
  interval: 1000,
  until: { path: "state", is: "eq", value: "done" },
  ...extra
})

const poll = (tool: keyof typeof looks | `jobs_${keyof typeof looks}`, extra: Readonly<Record<string, unknown>> = {}) =>
  call("mcp_sentinel_poll", input(tool, extra))

/** The ID in the last tool result. */
const idIn = (request: LlmRequest): string => /sentinel_[0-9a-f]+/.exec(lastToolResult(request))?.[0] ?? "no id"

const echo = (request: LlmRequest) => say(`REPLY ${lastToolResult(request)}`)
const attach = (request: LlmRequest) => call("mcp_sentinel_attach", { id: idIn(request) })

const script: ReadonlyArray<Rule> = [
  on(complete, (request) => say(`WOKEN by ${idsOf(request).length}`)),
  on("wait for the long job", poll("long"), say("ended my turn")),
  on("wait for the finished job", poll("finished"), echo),
  on(
    "ask by hand",
    (request) =>
      lastToolResult(request).includes(`"done"`)
        ? say("by hand: done")
        : call("jobs_byHand")
  ),
  on("keep your voice", poll("voice"), say("ended my turn")),
  on(
    "use a subagent",
    call("task", { description: "wait", prompt: "SUBAGENT waits", subagent_type: "general" }),
    say("delegated")
  ),
  on("SUBAGENT waits", poll("sub"), say("handed over")),
  on(
    "be busy",
    poll("busy"),
    call("bash", { command: "sleep 6", description: "sleeps" }),
    say("was busy")
  ),
  on(
    "two at once",
    callAll(
      { name: "mcp_sentinel_poll", input: input("left", { interval: 2000 }) },
      { name: "mcp_sentinel_poll", input: input("right", { interval: 2000 }) }
    ),
    say("ended my turn")
  ),
  on("delete me", poll("deleted"), echo),
  on("status of", (request) => call("mcp_sentinel_status", { id: idsOf(request)[0] }), echo),
  on("attach to", (request) => call("mcp_sentinel_attach", { id: idsOf(request)[0] }), echo),
  on("start one that never ends", poll("never"), echo),
  on("start one to attach", poll("attached"), attach, echo),
  on("poll one for later", poll("later"), echo),
  on("poll under rules", poll("rules"), echo),
  on("poll the hidden one", poll("long", { server: "hidden" }), echo),
  on("poll the switched one", poll("switched"), echo),
  on("poll the added one", poll("public", { server: "added" }), echo),
  on("poll by a public name", poll("jobs_public"), echo),
  on("write it badly", poll("long", { args: "[1]" }), echo)
]

const idsOf = (request: LlmRequest): ReadonlyArray<string> => [
  ...new Set(request.messages.findLast(({ role }) => role === "user")?.text.match(/sentinel_[0-9a-f]{32}/g) ?? [])
]

const idOf = (message: OpencodeMessage): string => /sentinel_[0-9a-f]{32}/.exec(textOf(message))?.[0] ?? "no id"

class Opencode extends Context.Tag("Opencode")<Opencode, {
  readonly llm: Llm
  readonly box: HostBox
  readonly oc: OpencodeServer
  readonly server: StdioJobs
  readonly config: ReturnType<typeof configOf>
}>() {}

const agents = {
  poller: { mode: "primary", model: "fake/m2", prompt: "You poll." },
  denied: { mode: "primary", prompt: "You may not.", permission: { "jobs_rul*": "deny" } },
  asking: { mode: "primary", prompt: "You ask.", permission: { jobs_rules: "ask" } }
}

const configOf = (plugin: string, server: StdioJobs) => {
  const local = { type: "local", command: [server.command, ...server.args] }
  const hidden = { type: "remote", url: "http://127.0.0.1:9/mcp", headers: { Authorization: "***" }, oauth: false }
  return { plugin: [plugin], agent: agents, mcp: { jobs: local, hidden } }
}

const start = Effect.gen(function*() {
  const llm = yield* scriptedLlm(script)
  const box = yield* makeOpencodeBox({ llm, config: {} })
  const server = yield* jobs(looks)
  const config = configOf(unpackPlugin(join(box.root, "plugin")), server)
  writeConfig(box, llm, config)
  return { llm, box, server, config, oc: yield* serveOpencode(box, opencode()) }
})

const readObject = Schema.decodeUnknownSync(Schema.Record({ key: Schema.String, value: Schema.Unknown }))

const Live = Layer.scoped(Opencode, start)

/** Waits for an answer to a wake-up in a session. */
const woken = (oc: OpencodeServer, session: string) =>
  eventually(
    Effect.map(oc.messages(session), (all) => all.find((message) => textOf(message).startsWith("WOKEN"))),
    "30 seconds",
    () => `session ${session} was not woken:\n${oc.process.stderr().slice(-3000)}`
  )

const turnsOf = (llm: Llm, match: (request: LlmRequest) => boolean) =>
  Effect.map(llm.turns, (turns) => turns.filter(match))

const mentions = (text: string) => (request: LlmRequest) =>
  request.messages.some((message) => message.text.includes(text))

layer(Live, { timeout: 120_000, excludeTestServices: true })("the packed plugin in a real opencode", (it) => {
  it.effect(
    "is loaded from its tarball, and its tools reach the model with core's schemas",
    () =>
      Effect.gen(function*() {
        const { box, llm, oc } = yield* Opencode
        const manifest = readObject(JSON.parse(readFileSync(join(box.root, "plugin/package/package.json"), "utf8")))
        assert.notProperty(manifest, "dependencies")
        assert.notProperty(manifest, "peerDependencies")
        const ids = yield* oc.toolIds
        const session = yield* oc.createSession()
        yield* oc.ask(session.id, "hello")
        const shown = (yield* llm.turns)[0]?.tools ?? []
        for (const { description, inputSchema, name } of definitions(false)) {
          assert.include(ids, name)
          const tool = shown.find((tool) => tool.name === name)
          assert.strictEqual(tool?.description, description)
          const { $schema, ...arrived } = readObject(tool?.inputSchema)
          const { additionalProperties, ...published } = readObject(inputSchema)
          assert.include($schema, "2020-12")
          assert.strictEqual(additionalProperties, false)
          assert.deepStrictEqual({ required: [], ...arrived }, { required: [], ...published })
        }
      }),
    120_000
  )

  it.effect(
    "costs three requests for a long job, none of them while it waits; by hand it is one for every look",
    () =>
      Effect.gen(function*() {
        const { llm, oc, server } = yield* Opencode
        const session = yield* oc.createSession()
        const before = (yield* llm.requests).length
        const acknowledged = yield* oc.ask(session.id, "wait for the long job")
        assert.strictEqual(textOf(acknowledged), "ended my turn")
        const endedTurn = (yield* llm.requests).length
        const wake = yield* llm.awaitRequest(complete, "30 seconds")
        yield* woken(oc, session.id)
        const withSentinel = (yield* llm.requests).length - before
        assert.strictEqual(endedTurn - before, 2)
        assert.strictEqual(withSentinel, 3)
        assert.include(wake.messages.at(-1)?.text, `"done"`)
        assert.strictEqual(server.calls("long"), looks.long)

        const byHand = yield* oc.createSession()
        const answer = yield* oc.ask(byHand.id, "ask by hand")
        assert.strictEqual(textOf(answer), "by hand: done")
        const hand = (yield* llm.requests).length - before - withSentinel
        assert.isAbove(hand, withSentinel)
        yield* Effect.logInfo(
          `LLM requests for a job of ${looks.long} looks: ${withSentinel} with the sentinel, ${hand} by hand`
        )
      }),
    120_000
  )

  it.effect("costs two requests when the condition already holds at the first look", () =>
    Effect.gen(function*() {
      const { llm, oc } = yield* Opencode
      const session = yield* oc.createSession()
      const before = (yield* llm.requests).length
      const answer = yield* oc.ask(session.id, "wait for the finished job")
      assert.include(textOf(answer), "completed")
      yield* Effect.sleep("2 seconds")
      assert.strictEqual((yield* llm.requests).length - before, 2)
    }), 60_000)

  it.effect("keeps the session's agent, model and variant", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const session = yield* oc.createSession()
      const model = { providerID: "fake", modelID: "m1" }
      yield* oc.ask(session.id, "keep your voice", { agent: "poller", model, variant: "high" })
      const before = yield* oc.session(session.id)
      yield* woken(oc, session.id)
      const after = yield* oc.session(session.id)
      assert.strictEqual(after.agent, "poller")
      assert.deepStrictEqual(after.model, { id: "m1", providerID: "fake", variant: "high" })
      assert.deepStrictEqual(after, before)
      const notice = (yield* oc.messages(session.id)).find((message) => complete.test(textOf(message)))
      assert.strictEqual(notice?.info.agent, "poller")
      assert.deepInclude(notice?.info.model, { modelID: "m1", variant: "high" })
    }), 60_000)

  it.effect("wakes the main session when a subagent armed it", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const session = yield* oc.createSession()
      yield* oc.ask(session.id, "use a subagent", { agent: "poller" })
      yield* woken(oc, session.id)
      const [child] = yield* oc.children(session.id)
      const childTexts = (yield* oc.messages(child?.id ?? "")).map(textOf)
      assert.isAbove(childTexts.length, 0)
      assert.isFalse(childTexts.some((text) => complete.test(text)))
      assert.strictEqual((yield* oc.session(session.id)).agent, "poller")
    }), 60_000)

  it.effect("joins the running turn when the agent is busy", () =>
    Effect.gen(function*() {
      const { llm, oc } = yield* Opencode
      const session = yield* oc.createSession()
      yield* oc.ask(session.id, "be busy")
      yield* woken(oc, session.id)
      const told = yield* turnsOf(llm, mentions("be busy"))
      const answers = (yield* oc.messages(session.id)).map(textOf).filter((text) => text.startsWith("WOKEN"))
      assert.strictEqual(answers.length, 1)
      assert.isAtMost(told.length, 4)
    }), 60_000)

  it.effect("tells two ends at once in one wake-up", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const session = yield* oc.createSession()
      yield* oc.ask(session.id, "two at once")
      const answer = yield* woken(oc, session.id)
      assert.strictEqual(textOf(answer), "WOKEN by 2")
      yield* Effect.sleep("1 second")
      const answers = (yield* oc.messages(session.id)).map(textOf).filter((text) => text.startsWith("WOKEN"))
      assert.strictEqual(answers.length, 1)
    }), 60_000)

  it.effect("keeps the result readable when the session was deleted", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const doomed = yield* oc.createSession()
      const id = idOf(yield* oc.ask(doomed.id, "delete me"))
      yield* oc.api("DELETE", `/session/${doomed.id}`)
      const other = yield* oc.createSession()
      yield* Effect.sleep("6 seconds")
      const status = textOf(yield* oc.ask(other.id, `status of ${id}`))
      assert.include(status, "completed")
      assert.include(status, `"done"`)
      assert.include(status, "no longer exists")
      yield* eventually(
        Effect.sync(() =>
          /mcp-sentinel: The notice of \w+ was not delivered/.test(oc.process.stderr()) ? true : undefined
        ),
        "5 seconds",
        () => "opencode's log does not tell of it"
      )
    }), 60_000)

  it.effect("shows the progress of attach, and goes on when attach is interrupted", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const session = yield* oc.createSession()
      const id = idOf(yield* oc.ask(session.id, "poll one for later"))
      const attaching = yield* Effect.fork(oc.ask(session.id, `attach to ${id}`))
      const title = yield* eventually(
        Effect.map(oc.messages(session.id), (all) =>
          all.flatMap(({ parts }) =>
            parts
          ).find(({ state, tool }) =>
            tool === "mcp_sentinel_attach" && state?.status === "running" && /poll \d/.test(state.title ?? "")
          )?.state?.title),
        "10 seconds",
        () => "no progress was shown"
      )
      assert.match(title, /poll \d/)
      yield* oc.api("POST", `/session/${session.id}/abort`)
      yield* Fiber.await(attaching)
      assert.strictEqual(textOf(yield* woken(oc, session.id)), "WOKEN by 1")
    }), 60_000)

  it.effect("attaches until the end, which is then not told again", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const session = yield* oc.createSession()
      const answer = textOf(yield* oc.ask(session.id, "start one to attach"))
      assert.include(answer, "completed")
      yield* Effect.sleep("1500 millis")
      assert.strictEqual((yield* oc.messages(session.id)).filter(({ info }) => info.role === "user").length, 1)
    }), 60_000)

  it.effect("holds opencode's permissions: allow, deny, ask", () =>
    Effect.gen(function*() {
      const { oc } = yield* Opencode
      const allowed = yield* oc.createSession()
      assert.include(textOf(yield* oc.ask(allowed.id, "poll under rules")), "completed")

      const denied = yield* oc.createSession()
      const refusal = textOf(yield* oc.ask(denied.id, "poll under rules", { agent: "denied" }))
      assert.include(refusal, "Error:")
      assert.include(refusal, `"jobs_rul*": "deny"`)

      for (const [reply, expected] of [["reject", "did not allow jobs_rules"], ["once", "completed"]] as const) {
        const asked = yield* oc.createSession()
        const asking = yield* Effect.fork(oc.ask(asked.id, "poll under rules", { agent: "asking" }))
        const question = yield* eventually(
          Effect.map(oc.permissions, (all) => all.find(({ sessionID }) => sessionID === asked.id)),
          "10 seconds",
          () => "opencode did not ask"
        )
        assert.strictEqual(question.permission, "jobs_rules")
        yield* oc.answerPermission(question.id, reply)
        assert.include(textOf(yield* Fiber.join(asking)), expected)
      }
    }), 60_000)

  it.effect(
    "says what is wrong in the tool's text: hidden secrets, a switched-off server, broken input",
    () =>
      Effect.gen(function*() {
        const { oc } = yield* Opencode
        const session = yield* oc.createSession()
        const hidden = textOf(yield* oc.ask(session.id, "poll the hidden one"))
        assert.include(hidden, "Error:")
        assert.include(hidden, "headers.Authorization")
        const broken = textOf(yield* oc.ask(session.id, "write it badly"))
        assert.include(broken, "Error:")
        assert.include(broken, "args")
        assert.include(textOf(yield* oc.ask(session.id, "poll by a public name")), "completed")
        yield* oc.api("POST", "/mcp/jobs/disconnect")
        yield* Effect.sleep("2500 millis")
        assert.include(textOf(yield* oc.ask(session.id, "poll the switched one")), "switched off")
        yield* oc.api("POST", "/mcp/jobs/connect")
        yield* Effect.sleep("2500 millis")
        assert.include(textOf(yield* oc.ask(session.id, "poll the switched one")), "completed")
      }),
    60_000
  )

  it.effect(
    "ends its server processes when opencode disposes it, and comes back with the configuration of then",
    () =>
      Effect.gen(function*() {
        const { box, config, llm, oc } = yield* Opencode
        const session = yield* oc.createSession()
        yield* oc.ask(session.id, "start one that never ends")
        assert.strictEqual((yield* jobServersIn(box)).length, 2)
        yield* oc.dispose
        yield* eventually(
          Effect.map(jobServersIn(box), (all) => all.length === 0 ? true : undefined),
          "10 seconds",
          () => "server processes outlived the instance"
        )
        assert.include(textOf(yield* oc.ask(session.id, "poll the added one")), "Error:")
        writeConfig(box, llm, { ...config, mcp: { ...config.mcp, added: config.mcp.jobs } })
        yield* oc.dispose
        assert.include(textOf(yield* oc.ask(session.id, "poll the added one")), "completed")
      }),
    60_000
  )
})
