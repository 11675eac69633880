import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call, callAll, lastToolResult, on, say } from "../src/Llm.js"
import { scriptedResponses } from "../src/ScriptedResponses.js"
import { eventsOf } from "./sse.js"

const tools = [
  { type: "function", name: "shell", parameters: { type: "object" } },
  { type: "namespace", name: "mcp__jobs", tools: [{ type: "function", name: "look", description: "looks" }] }
]
const user = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] })

const ask = (origin: string, input: ReadonlyArray<unknown>, extra: object = {}) =>
  Effect.promise(() =>
    fetch(`${origin}/v1/responses`, {
      method: "POST",
      body: JSON.stringify({ model: "m1", instructions: "You code.", input, tools, ...extra })
    }).then((response) => response.text())
  )

it.scopedLive("calls a function of a namespace by its joined name, and gives its output to the script", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedResponses([
      on("go", call("mcp__jobs__look", { id: 1 }), (request) => say(`saw ${lastToolResult(request)}`))
    ])
    const called = eventsOf(yield* ask(llm.origin, [user("go")]))
    assert.deepStrictEqual(called.map(({ event }) => event), [
      "response.created",
      "response.output_item.done",
      "response.completed"
    ])
    const item = Object(called[1]?.data["item"])
    assert.include(item, { type: "function_call", namespace: "mcp__jobs", name: "look", arguments: `{"id":1}` })

    const output = { type: "function_call_output", call_id: item.call_id, output: [{ type: "input_text", text: "42" }] }
    const said = eventsOf(yield* ask(llm.origin, [user("go"), item, output]))
    assert.include(JSON.stringify(said[1]?.data), `"text":"saw 42"`)
    const [first, second] = yield* llm.turns
    assert.deepStrictEqual(first?.tools.map(({ name }) => name), ["shell", "mcp__jobs__look"])
    assert.deepStrictEqual(second?.messages.map(({ role, text }) => `${role}: ${text}`), [
      "system: You code.",
      "user: go",
      "tool: 42"
    ])
  }))

it.scopedLive("calls several functions in one answer, each with an id of its own", () =>
  Effect.gen(function*() {
    const both = callAll({ name: "shell", input: {} }, { name: "mcp__jobs__look", input: "{broken" })
    const llm = yield* scriptedResponses([on("go", both)])
    const events = eventsOf(yield* ask(llm.origin, [user("go")]))
    const items = events.flatMap(({ data }) => "item" in data ? [Object(data["item"])] : [])
    assert.deepStrictEqual(items.map(({ name }) => name), ["shell", "look"])
    assert.notProperty(items[0], "namespace")
    assert.strictEqual(items[1].arguments, "{broken")
    assert.notStrictEqual(items[0].call_id, items[1].call_id)
  }))

it.scopedLive("knows a request without tools as one that the harness makes on its own, and lists no models", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedResponses([])
    assert.include(yield* ask(llm.origin, [user("name this")], { tools: [] }), "Title")
    assert.deepStrictEqual(yield* llm.turns, [])
    const models = yield* Effect.promise(() => fetch(`${llm.origin}/v1/models`).then((reply) => reply.json()))
    assert.deepStrictEqual(models, { object: "list", data: [], models: [] })
  }))
