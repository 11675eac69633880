import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { ToolFailure, TransportFailure } from "../src/Errors.js"
import type { JsonObject } from "../src/Json.js"
import type { Notice } from "../src/Notifier.js"
import { ToolKit } from "../src/ToolKit.js"
import { fromText } from "../src/ToolResult.js"
import * as Engine from "./support/engine.js"

const { value } = Engine

/** The toolkit over a scripted tool; `seen` remembers the calls. */
const withKit = <A, E>(
  script: Engine.Script,
  test: (
    call: (tool: string, input: JsonObject) => Effect.Effect<string>,
    seen: Ref.Ref<ReadonlyArray<{ readonly tool: string; readonly args: JsonObject; readonly once: boolean }>>
  ) => Effect.Effect<A, E>
) =>
  Effect.gen(function*() {
    const seen = yield* Ref.make<ReadonlyArray<{ tool: string; args: JsonObject; once: boolean }>>([])
    const world = {
      calls: yield* Ref.make(0),
      inFlight: yield* Ref.make(0),
      maxInFlight: yield* Ref.make(0),
      notices: yield* Ref.make<ReadonlyArray<Notice>>([])
    }
    const remembering: Engine.Script = (n, call) =>
      Effect.zipRight(
        Ref.update(seen, (calls) => [...calls, { tool: call.tool, args: call.args, once: call.once ?? false }]),
        script(n, call)
      )
    return yield* Effect.flatMap(ToolKit, (kit) =>
      test((tool, input) => Effect.map(kit.call(tool, input, { origin: {} }), ({ text }) => text), seen)).pipe(
        Effect.provide(Layer.provide(ToolKit.layer, Engine.layerOf({ script: remembering }, world)))
      )
  })

const done = { path: "status", is: "eq", value: "done" }
const job = { server: "jobs", tool: "get_status", until: done, start: { tool: "start_job", args: { n: 1 } } }
const idOf = (text: string) => /sentinel_[0-9a-f]+/.exec(text)?.[0] ?? ""

describe("submit and wait", () => {
  it.effect("submits once, and the polls take values from its result", () =>
    withKit(
      (_, call) => value(call.tool === "start_job" ? { job: { id: 7 } } : { status: "running" }),
      (call, seen) =>
        Effect.gen(function*() {
          const text = yield* call("mcp_sentinel_poll", {
            ...job,
            args: { id: { $from: "job.id" }, deep: [{ $from: "job" }] }
          })
          assert.match(text, /\*\*Submitted:\*\* start_job, once/)
          yield* TestClock.adjust("10 seconds")
          const args = { id: 7, deep: [{ id: 7 }] }
          assert.deepStrictEqual(yield* Ref.get(seen), [
            { tool: "start_job", args: { n: 1 }, once: true },
            { tool: "get_status", args, once: false },
            { tool: "get_status", args, once: false },
            { tool: "get_status", args, once: false }
          ])
        })
    ))

  it.effect("a submission whose answer was lost is never repeated, and the end says that its fate is unknown", () =>
    withKit(
      (_, { server, tool }) => Effect.fail(new TransportFailure({ server, tool, message: "connection lost" })),
      (call, seen) =>
        Effect.gen(function*() {
          const text = yield* call("mcp_sentinel_poll", job)
          assert.match(text, /\*\*Status:\*\* error/)
          assert.match(text, /whether the job runs is unknown; it is not sent again: connection lost/)
          yield* TestClock.adjust("1 hour")
          assert.strictEqual((yield* Ref.get(seen)).length, 1)
        })
    ))

  it.effect("a refused submission, or a result without what args need, ends as an error that says so", () =>
    Effect.gen(function*() {
      const refused = yield* withKit(
        (_, { server, tool }) =>
          Effect.fail(new ToolFailure({ server, tool, message: "queue full", value: fromText("queue full") })),
        (call) => call("mcp_sentinel_poll", job)
      )
      assert.match(refused, /start was refused: queue full/)
      const lacking = yield* withKit(
        () => value({ job: 1 }),
        (call) => call("mcp_sentinel_poll", { ...job, args: { id: { $from: "task.id" } } })
      )
      assert.match(lacking, /lacks what args take from it: path "task.id" not found; keys there: job/)
    }))

  it.effect("the timeout bounds a submission that hangs", () =>
    withKit(() => Effect.never, (call) =>
      Effect.gen(function*() {
        const poll = yield* Effect.fork(call("mcp_sentinel_poll", { ...job, timeout: 5_000 }))
        yield* TestClock.adjust("6 seconds")
        const id = idOf(yield* poll)
        assert.match(yield* call("mcp_sentinel_status", { id }), /\*\*Status:\*\* timeout[^]*start did not answer/)
      })))

  it.effect("wrong forms are refused before anything starts", () =>
    withKit(() => value({}), (call, seen) =>
      Effect.gen(function*() {
        assert.match(
          yield* call("mcp_sentinel_poll", { ...job, start: {} }),
          /^Error: .*"start" must be an object such as/
        )
        assert.match(
          yield* call("mcp_sentinel_poll", { ...job, args: { id: { $from: "a[*]" } } }),
          /^Error: .*wildcards/
        )
        assert.deepStrictEqual(yield* Ref.get(seen), [])
      })))
})

describe("select", () => {
  const poll = (select: string | JsonObject) =>
    withKit(
      () => value({ status: "done", log: "x".repeat(500), job: { id: 3 } }),
      (call) => call("mcp_sentinel_poll", { server: "jobs", tool: "t", until: done, select })
    )

  it.effect("shows a path, or several by name, and says when one leads nowhere", () =>
    Effect.gen(function*() {
      assert.match(yield* poll("job.id"), /\n```\n3\n```/)
      assert.match(
        yield* poll({ id: "job.id", log: "logs" }),
        /\{"id":3,"log":"\(path \\"logs\\" not found; keys there: status, log, job\)"\}/
      )
      assert.notMatch(yield* poll("job"), /xxx/)
      assert.match(yield* poll("jobs[*]"), /^Error: select: wildcards/)
    }))
})

describe("attach to several", () => {
  it.effect("gives a table of outcomes, the ends, and who still runs", () =>
    withKit(
      (_, call) => value({ status: call.args["fast"] === true ? "done" : "running" }),
      (call) =>
        Effect.gen(function*() {
          const submit = (args: JsonObject) =>
            Effect.map(call("mcp_sentinel_poll", { server: "jobs", tool: "t", args, until: done }), idOf)
          const [slow, fast] = [yield* submit({}), yield* submit({ fast: true })]
          const any = yield* call("mcp_sentinel_attach", { ids: [slow, fast], mode: "any" })
          assert.match(any, /^## Sentinels: 1 of 2 ended/)
          assert.include(any, `| ${fast} | completed | 1 |`)
          assert.include(any, `**Still running:** ${slow}`)
          assert.match(yield* call("mcp_sentinel_attach", { id: slow, ids: [fast] }), /^Error: .*not both/)
          assert.match(yield* call("mcp_sentinel_attach", {}), /^Error: /)
        })
    ))
})

describe("read with changes", () => {
  it.effect("shows only polls whose value differs from the one before", () =>
    withKit((n) => value({ status: "running", step: Math.floor(n / 3) }), (call) =>
      Effect.gen(function*() {
        const id = idOf(yield* call("mcp_sentinel_poll", { server: "jobs", tool: "t", until: done }))
        yield* TestClock.adjust("40 seconds")
        const polls = (text: string) => [...text.matchAll(/### Poll (\d+)/g)].map(([, poll]) => poll)
        assert.deepStrictEqual(polls(yield* call("mcp_sentinel_read", { id, changes: true })), ["1", "3", "6", "9"])
        assert.deepStrictEqual(polls(yield* call("mcp_sentinel_read", { id, changes: true, limit: 2 })), ["6", "9"])
        assert.deepStrictEqual(polls(yield* call("mcp_sentinel_read", { id, changes: true, offset: 3, limit: 1 })), [
          "6"
        ])
        assert.match(
          yield* call("mcp_sentinel_read", { id, changes: true, offset: 8 }),
          /No change from there on|Poll 9/
        )
      })))
})
