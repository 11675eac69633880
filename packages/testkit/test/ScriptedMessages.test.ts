import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { claudeLlm } from "../src/ClaudeBox.js"
import { Answer, call, callAll, lastToolResult, lastUser, on, say } from "../src/Llm.js"
import { scriptedMessages } from "../src/ScriptedMessages.js"
import { eventsOf } from "./sse.js"

const tools = [{ name: "mcp__jobs__look", description: "looks", input_schema: { type: "object" } }]

const ask = (origin: string, messages: ReadonlyArray<unknown>, extra: object = {}) =>
  Effect.promise(() =>
    fetch(`${origin}/v1/messages?beta=true`, {
      method: "POST",
      body: JSON.stringify({ model: "m1", system: [{ type: "text", text: "You code." }], messages, tools, ...extra })
    }).then(async (reply) => ({ status: reply.status, text: await reply.text() }))
  )

it.scopedLive("calls a tool, and gives its result to the script apart from what the user says beside it", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedMessages([
      on("go", call("mcp__jobs__look", { id: 1 }), (request) => say(`saw ${lastToolResult(request)}`))
    ])
    const called = eventsOf((yield* ask(llm.origin, [{ role: "user", content: "go" }])).text)
    assert.deepStrictEqual(called.map(({ event }) => event), [
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
    const block = Object(called[1]?.data["content_block"])
    assert.include(block, { type: "tool_use", name: "mcp__jobs__look" })
    assert.deepStrictEqual(called[2]?.data["delta"], { type: "input_json_delta", partial_json: `{"id":1}` })
    assert.include(called[4]?.data["delta"], { stop_reason: "tool_use" })

    const result = { type: "tool_result", tool_use_id: block.id, content: [{ type: "text", text: "42" }] }
    const said = yield* ask(llm.origin, [
      { role: "user", content: [{ type: "text", text: "go" }] },
      { role: "assistant", content: [block] },
      { role: "user", content: [result] }
    ])
    assert.include(said.text, `"text":"saw 42"`)
    assert.include(said.text, `"stop_reason":"end_turn"`)
    const [first, second] = yield* llm.turns
    assert.deepStrictEqual(first?.tools, [
      { name: "mcp__jobs__look", description: "looks", inputSchema: { type: "object" } }
    ])
    assert.deepStrictEqual(second?.messages.map(({ role, text }) => `${role}: ${text}`), [
      "system: You code.",
      "user: go",
      "assistant: ",
      "tool: 42"
    ])
  }))

it.scopedLive("calls several tools in one answer, each with a block and an id of its own", () =>
  Effect.gen(function*() {
    const both = callAll({ name: "a", input: {} }, { name: "b", input: "{broken" })
    const llm = yield* scriptedMessages([on("go", both)])
    const events = eventsOf((yield* ask(llm.origin, [{ role: "user", content: "go" }])).text)
    const blocks = events.flatMap(({ data }) => "content_block" in data ? [Object(data["content_block"])] : [])
    assert.deepStrictEqual(blocks.map(({ name }) => name), ["a", "b"])
    assert.notStrictEqual(blocks[0].id, blocks[1].id)
    assert.include(JSON.stringify(events), `"partial_json":"{broken"`)
  }))

it.scopedLive("counts tokens, fails as told, and answers nothing else", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedMessages([on("fail", Answer.Fail({ status: 529, message: "overloaded" }))])
    const count = yield* Effect.promise(() =>
      fetch(`${llm.origin}/v1/messages/count_tokens`, { method: "POST", body: "{}" }).then((reply) => reply.json())
    )
    assert.deepStrictEqual(count, { input_tokens: 10 })
    assert.strictEqual((yield* ask(llm.origin, [{ role: "user", content: "fail" }])).status, 529)
    const other = yield* Effect.promise(() => fetch(`${llm.origin}/v1/files`))
    assert.strictEqual(other.status, 404)
    assert.strictEqual((yield* llm.requests).length, 1)
  }))

it.scopedLive("hides Claude Code's own reminders from a script", () =>
  Effect.gen(function*() {
    const llm = yield* claudeLlm([on("go", say("gone"))])
    const reminder = { type: "text", text: "<system-reminder>\ngo nowhere\n</system-reminder>\n" }
    const given = [reminder, { type: "text", text: "go" }]
    assert.include((yield* ask(llm.origin, [{ role: "user", content: given }])).text, "gone")
    const [request] = yield* llm.turns
    assert.strictEqual(request === undefined ? "" : lastUser(request), "go")
  }))
