import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Answer, call, lastToolResult, on, say } from "../src/Llm.js"
import { scriptedLlm } from "../src/ScriptedLlm.js"

const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }]
const user = (content: string) => ({ role: "user", content })

const ask = (origin: string, body: object) =>
  Effect.promise(() =>
    fetch(`${origin}/v1/chat/completions`, { method: "POST", body: JSON.stringify({ model: "m1", ...body }) })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
  )

it.scopedLive("walks through the steps of a turn by its tool results", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedLlm([
      on("go", call("look", { id: 1 }), (request) => say(`saw ${lastToolResult(request)}`))
    ])
    const first = yield* ask(llm.origin, { tools, messages: [user("go")] })
    assert.include(first.text, `"name":"look","arguments":"{\\"id\\":1}"`)
    assert.include(first.text, `"finish_reason":"tool_calls"`)
    const second = yield* ask(llm.origin, {
      tools,
      messages: [user("go"), { role: "assistant", content: null }, { role: "tool", content: "42" }]
    })
    assert.include(second.text, `"content":"saw 42"`)
    assert.isTrue(second.text.endsWith("data: [DONE]\n\n"))
  }))

it.scopedLive("counts turns apart from the requests that a harness makes on its own", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedLlm([])
    const waiting = yield* Effect.fork(llm.awaitRequest(/second/, "5 seconds"))
    const title = yield* ask(llm.origin, { messages: [user("first")] })
    yield* ask(llm.origin, { tools, messages: [user("the second")] })
    assert.include(title.text, "Title")
    assert.strictEqual((yield* llm.turns).length, 1)
    assert.strictEqual((yield* llm.requests).length, 2)
    assert.strictEqual((yield* Fiber.join(waiting)).tools[0]?.name, "look")
  }))

it.scopedLive("shows an unscripted turn and a scripted failure as they are", () =>
  Effect.gen(function*() {
    const llm = yield* scriptedLlm([on("fail", Answer.Fail({ status: 503, message: "busy" }))])
    assert.include((yield* ask(llm.origin, { tools, messages: [user("what")] })).text, "UNSCRIPTED: what")
    assert.strictEqual((yield* ask(llm.origin, { tools, messages: [user("fail")] })).status, 503)
    const missing = yield* Effect.flip(llm.awaitRequest("never", "50 millis"))
    assert.include(missing.message, "turn: what")
  }))
