import { assert, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { interpret, isCutOff, isMissing } from "../src/outcome.js"

const target = { server: "ci", tool: "get_status" }

const failing = (message: string, code?: string, reached = true) =>
  interpret({
    target,
    reached,
    result: {
      isError: true,
      content: [{ type: "text", text: `Error: ${message}` }],
      error: { message, ...(code === undefined ? {} : { info: { name: "Error", code } }) }
    }
  })

const kind = (outcome: ReturnType<typeof interpret>) => Either.isLeft(outcome) ? outcome.left._tag : "value"

const good = (content: ReadonlyArray<string>, structuredContent?: { readonly [key: string]: string }) =>
  Either.getOrThrow(interpret({
    target,
    reached: true,
    result: {
      isError: false,
      content: [{ type: "text", text: "(what dsh shows the model)" }],
      value: {
        content: content.map((text) => ({ type: "text", text })),
        ...(structuredContent === undefined ? {} : { structuredContent })
      }
    }
  }))

it("reads the whole value, never what dsh shows the model", () => {
  assert.deepStrictEqual(good(["{\"status\":\"done\"}"]).json, { status: "done" })
  assert.deepStrictEqual(good(["line 1", "line 2"]).json, "line 1\nline 2")
  assert.deepStrictEqual(good(["done!"], { status: "done" }).json, { status: "done" })
})

it.each([
  ["MCP error -32602: Input validation error", undefined, "FatalFailure"],
  ["Tool \"build\" requires task-based execution, which this bridge does not support", undefined, "FatalFailure"],
  ["Streamable HTTP error: Error POSTing to endpoint: 401 Unauthorized", undefined, "FatalFailure"],
  ["MCP error -32001: Request timed out", undefined, "TransportFailure"],
  ["MCP error -32000: Connection closed", undefined, "TransportFailure"],
  ["Not connected", undefined, "TransportFailure"],
  ["fetch failed", undefined, "TransportFailure"],
  ["Streamable HTTP error: Error POSTing to endpoint: Bad gateway", undefined, "TransportFailure"],
  ["unknown tool \"mcp__ci__get_status\"", "UNKNOWN_TOOL", "TransportFailure"],
  ["job failed: E42", undefined, "ToolFailure"],
  ["MCP error -32603: Internal error", undefined, "ToolFailure"]
])("tells by its words what %s (%s) is: %s", (message, code, expected) => {
  assert.strictEqual(kind(failing(message, code)), expected)
})

it("takes a call that never reached its tool for a refusal by dsh", () => {
  const outcome = failing("not on a Sunday", undefined, false)
  assert.strictEqual(kind(outcome), "FatalFailure")
  if (Either.isLeft(outcome)) assert.include(outcome.left.message, "dsh refused the call: not on a Sunday")
})

it("offers the value of a tool's error to conditions", () => {
  const outcome = failing("{\"state\":\"failed\"}")
  assert.isTrue(Either.isLeft(outcome) && outcome.left._tag === "ToolFailure")
  if (Either.isLeft(outcome) && outcome.left._tag === "ToolFailure") {
    assert.deepStrictEqual(outcome.left.value.json, { state: "failed" })
  }
})

it("knows the failures that a moment may mend", () => {
  const about = (message: string, code?: string) => {
    const outcome = failing(message, code)
    if (!Either.isLeft(outcome)) return "value"
    return isCutOff(outcome.left) ? "cut off" : isMissing(outcome.left) ? "missing" : "other"
  }
  assert.strictEqual(about("MCP error -32000: Connection closed"), "cut off")
  assert.strictEqual(about("Not connected"), "cut off")
  assert.strictEqual(about("unknown tool", "UNKNOWN_TOOL"), "missing")
  assert.strictEqual(about("MCP error -32001: Request timed out"), "other")
  assert.strictEqual(about("job failed"), "other")
})
