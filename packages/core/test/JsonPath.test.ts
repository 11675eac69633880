import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import type { Json } from "../src/Json.js"
import * as JsonPath from "../src/JsonPath.js"

const parsed = (path: string): JsonPath.JsonPath =>
  Either.getOrThrowWith(JsonPath.parse(path), ({ message }) => new Error(message))

const look = (path: string, json: Json): Json => {
  const found = JsonPath.resolve(parsed(path), json)
  return found._tag === "Found" ? found.value : found.reason
}

const data: Json = {
  status: "running",
  "a.b": { "c-d": 1, "x y": 2, größe: 3, "0": 4, "quo\"te": 5, "": 6 },
  "@odata.next": "u",
  $ref: "r",
  items: [1, { name: "two" }, null],
  nothing: null
}

describe("what a path leads to", () => {
  const leads: ReadonlyArray<readonly [path: string, value: Json]> = [
    ["status", "running"],
    ["$.status", "running"],
    ["$[\"status\"]", "running"],
    ["$ref", "r"],
    ["items[0]", 1],
    ["$.items[0]", 1],
    ["items[1].name", "two"],
    ["items[ 1 ][ 'name' ]", "two"],
    ["items[-1]", null],
    ["items[-3]", 1],
    ["nothing", null],
    ["[\"a.b\"][\"c-d\"]", 1],
    ["[\"a.b\"].c-d", 1],
    ["['a.b']['x y']", 2],
    ["[\"a.b\"].größe", 3],
    ["[\"a.b\"][\"0\"]", 4],
    ["[\"a.b\"][\"quo\\\"te\"]", 5],
    ["['a.b']['quo\\u0022te']", 5],
    ["['a.b']['']", 6],
    ["[\"@odata.next\"]", "u"]
  ]
  for (const [path, value] of leads) it(path, () => assert.deepStrictEqual(look(path, data), value))

  it("no path, and the root alone, are the whole value", () => {
    assert.strictEqual(look("", data), data)
    assert.strictEqual(look("$", data), data)
  })
  it("a list at the root", () => assert.strictEqual(look("[0].data.path", [{ data: { path: "found" } }]), "found"))
  it("an own key named like a built-in one", () => {
    assert.strictEqual(look("__proto__.x", JSON.parse("{\"__proto__\":{\"x\":1}}")), 1)
  })
  it("ten thousand levels", () => {
    let json: Json = "end"
    for (let level = 0; level < 10_000; level++) json = [json]
    assert.strictEqual(look("[0]".repeat(10_000), json), "end")
  })
})

describe("what is told when it leads nowhere", () => {
  const told: ReadonlyArray<readonly [path: string, json: Json, reason: string]> = [
    ["stauts", { status: 1, progress: 2 }, "path \"stauts\" not found; keys there: status, progress"],
    ["job.stauts", { job: { status: 1 } }, "path \"job.stauts\" not found; keys there: status"],
    ["Status", { status: 1 }, "path \"Status\" not found; \"status\" differs in letter case only; keys there: status"],
    ["a", {}, "path \"a\" not found; the object there is empty"],
    ["a", { "x y": 1 }, "path \"a\" not found; keys there: \"x y\""],
    ["[0]", { a: 1 }, "path \"[0]\" not found; keys there: a"],
    ["items[5]", data, "path \"items[5]\" not found; items has 3 items"],
    ["items[-4]", data, "path \"items[-4]\" not found; items has 3 items"],
    ["items.length", data, "path \"items.length\" not found; items is a list of 3 items, write an index such as [0]"],
    ["status.length", data, "path \"status.length\" not found; status is \"running\", which has no keys or items"],
    ["nothing.x", data, "path \"nothing.x\" not found; nothing is null, which has no keys or items"],
    ["status", "plain", "path \"status\" not found; the value is \"plain\", which has no keys or items"],
    ["constructor", { a: 1 }, "path \"constructor\" not found; keys there: a"],
    ["__proto__", { a: 1 }, "path \"__proto__\" not found; keys there: a"]
  ]
  for (const [path, json, reason] of told) it(path, () => assert.strictEqual(look(path, json), reason))

  it("a crowd of keys, long keys and keys that are no plain text stay short, on one line", () => {
    const crowd = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`key${at}${"y".repeat(200)}`, at]))
    const reason = String(look("x", crowd))
    assert.isBelow(reason.length, 700)
    assert.include(reason, "and 4988 more")
    assert.notMatch(String(look("x", { "a\u202eb": 1, "c\nd": 2, "e\u0007": 3 })), /[\p{Cc}\u202e]/u)
  })
})

describe("what is refused, and at which column", () => {
  const refused: ReadonlyArray<readonly [path: string, column: number, told: string]> = [
    ["jobs[*].status", 5, "wildcards"],
    ["jobs.*", 5, "wildcards"],
    ["*", 1, "wildcards"],
    ["jobs[?(@.a==1)]", 5, "filters"],
    ["items[0:2]", 6, "slices"],
    ["items[:-1]", 6, "slices"],
    ["items[0,1]", 6, "several keys"],
    ["$..status", 2, "recursive descent"],
    [".status", 1, "write \"status\""],
    ["status.", 7, "missing after the dot"],
    ["$.", 2, "missing after the dot"],
    ["items[]", 6, "missing between the brackets"],
    ["items[a]", 6, "a bracket takes"],
    ["items[0", 6, "a bracket takes"],
    ["items[99999999999999999999]", 6, "a bracket takes"],
    ["[\"a", 1, "a bracket takes"],
    ["x y", 2, "quote a key"],
    ["size()", 5, "filters"]
  ]
  for (const [path, column, told] of refused) {
    it(path, () =>
      Either.match(JsonPath.parse(path), {
        onRight: () => assert.fail("accepted"),
        onLeft: (problem) => {
          assert.strictEqual(problem.column, column)
          assert.include(problem.message, told)
        }
      }))
  }
})

it("a long path of any form is read in linear time", () => {
  const start = performance.now()
  for (const path of [`[${" ".repeat(200_000)}x`, `[${"1".repeat(200_000)}x`, `a${"[ ".repeat(100_000)}`]) {
    assert.isTrue(Either.isLeft(JsonPath.parse(path)))
  }
  assert.isTrue(Either.isRight(JsonPath.parse("a.".repeat(100_000) + "b")))
  assert.isBelow(performance.now() - start, 2_000)
})

const step = FastCheck.oneof(FastCheck.string({ unit: "binary" }), FastCheck.string(), FastCheck.integer())

it.prop("a path that is written out reads back the same", [FastCheck.array(step)], ([path]) => {
  assert.deepStrictEqual(parsed(JsonPath.render(path)), path)
})

it.prop(
  "any text is a path or a refusal, and any path finds or tells",
  [FastCheck.string(), FastCheck.jsonValue()],
  ([text, json]) => {
    Either.map(JsonPath.parse(text), (path) => JsonPath.resolve(path, JSON.parse(JSON.stringify(json))))
  }
)
