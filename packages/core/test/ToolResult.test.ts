import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { excerpt, writeJson } from "../src/Excerpt.js"
import type { Json } from "../src/Json.js"
import { fromCallToolResult, fromJson, fromText } from "../src/ToolResult.js"

const text = (...texts: ReadonlyArray<string>) => ({ content: texts.map((text) => ({ type: "text", text })) })

const deep = (levels: number): Json => JSON.parse("[".repeat(levels) + "]".repeat(levels))

describe("the value of a call", () => {
  it("is the JSON document that the text holds", () => {
    const value = fromCallToolResult(text("{\"status\":\"running\"}\n"))
    assert.deepStrictEqual(value.json, { status: "running" })
    assert.isUndefined(value.text)
  })
  it("ignores a byte order mark", () => {
    assert.deepStrictEqual(fromCallToolResult(text("\uFEFF{\"a\":1}")).json, { a: 1 })
    assert.strictEqual(fromText("\uFEFFdone").json, "done")
  })
  it("is one document even when it comes in several blocks", () => {
    assert.deepStrictEqual(fromCallToolResult(text("{\"a\":", "1}")).json, { a: 1 })
  })
  it("prefers the text that is JSON to structuredContent that wraps it", () => {
    const result = { ...text("{\"status\":\"done\"}\n"), structuredContent: { content: "{\"status\":\"done\"}\n" } }
    assert.deepStrictEqual(fromCallToolResult(result).json, { status: "done" })
  })
  it("is structuredContent where the text is no JSON, or empty, or absent", () => {
    assert.deepStrictEqual(fromCallToolResult({ ...text("Job 7 runs"), structuredContent: { job: 7 } }).json, {
      job: 7
    })
    assert.deepStrictEqual(fromCallToolResult({ ...text(""), structuredContent: { job: 7 } }).json, { job: 7 })
    assert.deepStrictEqual(fromCallToolResult({ structuredContent: { job: 7 } }).json, { job: 7 })
  })
  it("takes a null structuredContent for an absent one", () => {
    assert.strictEqual(fromCallToolResult({ ...text("running"), structuredContent: null }).json, "running")
  })
  it("is else the text, its blocks joined by newlines", () => {
    assert.deepStrictEqual(fromCallToolResult(text("{\"a\":1}", "{\"b\":2}")), {
      json: "{\"a\":1}\n{\"b\":2}",
      raw: "{\"a\":1}\n{\"b\":2}"
    })
    assert.strictEqual(fromCallToolResult(text("")).json, "")
  })
  it("reads the text of an error as well", () => {
    assert.deepStrictEqual(fromCallToolResult({ ...text("{\"status\":\"pending\"}"), isError: true }).json, {
      status: "pending"
    })
  })
  it("is else the content, without binary data", () => {
    const data = "QUJD".repeat(1_000)
    const value = fromCallToolResult({
      content: [
        { type: "image", data, mimeType: "image/png" },
        { type: "resource", resource: { uri: "file:///a", blob: data } },
        { type: "resource_link", uri: "file:///b", data: 5 },
        "odd"
      ]
    })
    assert.notInclude(value.raw, "QUJD")
    assert.include(value.raw, "4000 characters omitted")
    assert.include(value.raw, "file:///b")
    assert.include(value.raw, "odd")
  })
  it("reads the result of an old server", () => {
    assert.deepStrictEqual(fromCallToolResult({ toolResult: { a: 1 } }).json, { a: 1 })
    assert.deepStrictEqual(fromCallToolResult({ toolResult: "{\"a\":1}" }).json, { a: 1 })
  })
  it("is a value even where the result is a strange one", () => {
    assert.deepStrictEqual(fromCallToolResult({}).json, [])
    assert.deepStrictEqual(fromCallToolResult("[1]").json, [1])
    assert.isNull(fromCallToolResult(undefined).json)
    assert.isNull(fromCallToolResult([1]).json)
    assert.deepStrictEqual(fromCallToolResult({ content: "text" }).json, [])
  })
  const part = FastCheck.oneof(
    FastCheck.jsonValue(),
    FastCheck.array(FastCheck.record({ type: FastCheck.constant("text"), text: FastCheck.json() }))
  )
  it.prop("never throws", [FastCheck.anything()], ([result]) => {
    assert.isString(fromCallToolResult(result).raw)
  })
  it.prop("is told for whatever JSON stands in a result", [
    FastCheck.record({ content: part, structuredContent: part, toolResult: part }, { requiredKeys: [] })
  ], ([result]) => {
    assert.isString(fromCallToolResult(result).raw)
  })
})

describe("a bare JSON scalar", () => {
  for (const bare of ["42", "true", "null", "-1.5e3", "\"done\""]) {
    it(bare, () => {
      assert.deepStrictEqual(fromText(`${bare}\n`).json, JSON.parse(bare))
      assert.strictEqual(fromText(`${bare}\n`).text, bare)
    })
  }
  it("keeps the digits that a number loses", () => {
    const value = fromText("12345678901234567890")
    assert.strictEqual(value.text, "12345678901234567890")
    assert.strictEqual(value.raw, "12345678901234567890")
  })
  it("only looks like one", () => {
    for (const plain of ["truely", "4 of 5", "-", "nullify", "{broken"]) {
      assert.deepStrictEqual(fromText(plain), { json: plain, raw: plain })
    }
  })
})

describe("the value as text", () => {
  it("of a string is the string", () => assert.strictEqual(fromJson("a\"b").raw, "a\"b"))
  it("of anything else is JSON", () => assert.strictEqual(fromJson({ a: [1, null] }).raw, "{\"a\":[1,null]}"))
  it("of a very deep value is still JSON", () => {
    assert.strictEqual(fromJson(deep(10_000)).raw.length, 20_000)
    assert.strictEqual(fromCallToolResult(text("[".repeat(10_000) + "]".repeat(10_000))).raw.length, 20_000)
  })
})

describe("excerpts", () => {
  it.prop("of a small value are its JSON", [FastCheck.jsonValue()], ([json]) => {
    const clean: Json = JSON.parse(JSON.stringify(json))
    assert.strictEqual(writeJson(clean), JSON.stringify(clean))
  })
  it.prop(
    "are short, on one line, and cut no character",
    [FastCheck.string({ unit: "grapheme", maxLength: 200 })],
    ([long]) => {
      const short = excerpt(long)
      assert.isAtMost(short.length, 81)
      assert.notMatch(short, /\p{Cs}/u)
      assert.notMatch(short, /[\n\r\u2028]/)
    }
  )
  it("of a pair at the cut leave the whole character out", () => {
    assert.strictEqual(excerpt(`${"x".repeat(78)}😀😀`), `"${"x".repeat(78)}…`)
  })
  it("of a list with a million items are written without looking at all of them", () => {
    const list: Json = Array.from({ length: 1_000_000 }, (_, item) => item)
    const start = performance.now()
    for (let times = 0; times < 100; times++) excerpt(list)
    assert.isBelow(performance.now() - start, 2_000)
  })
})
