import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import { compile, type Compiled, judge, operators, type Verdict } from "../src/Condition.js"
import type { Json } from "../src/Json.js"
import { fromJson, fromText, type ToolValue } from "../src/ToolResult.js"

const compiled = (condition: unknown): Compiled => Either.getOrThrow(compile(condition, "until"))

const verdict = (condition: unknown, value: ToolValue): Verdict => judge(compiled(condition), value)

const of = (is: string, value: Json, data: Json): Verdict => verdict({ path: "x", is, value }, fromJson({ x: data }))

const refusal = (condition: unknown): string =>
  Either.match(compile(condition, "until"), { onLeft: ({ message }) => message, onRight: () => "accepted" })

const holds = { _tag: "Holds", rank: 1 } as const
const no = { _tag: "DoesNotHold", rank: 0 } as const
const open = { _tag: "Undecided", rank: 0.5 } as const
type Expected = typeof holds | typeof no | typeof open

describe("operators", () => {
  const cases: ReadonlyArray<readonly [data: Json, is: string, value: Json, expected: Expected, told?: string]> = [
    ["done", "eq", "done", holds, "x is \"done\""],
    ["running", "eq", "done", no, "x is \"running\", not \"done\""],
    ["running", "ne", "done", holds],
    ["done", "ne", "done", no],
    ["DONE", "eq", "done", no, "differs in letter case only"],
    [{ a: [1, { b: null }] }, "eq", { a: [1, { b: null }] }, holds],
    [{ a: 1, b: 2 }, "eq", { b: 2, a: 1 }, holds],
    [{ a: 1 }, "eq", { a: 1, b: 2 }, no],
    [{ a: 1 }, "eq", { b: 1 }, no],
    [[1, 2], "eq", [1], no],
    [[1], "eq", { "0": 1 }, no],
    [["1"], "ne", [1], holds],
    [null, "eq", null, holds],
    [null, "eq", 0, no],
    [0, "eq", false, no],
    [100, "eq", "100", open, "the string of the same text"],
    [100, "ne", "100", open],
    ["100", "eq", 100, open, "the number of the same text"],
    ["100", "ne", 100, open],
    [true, "ne", "true", open],
    ["null", "ne", null, open],
    [null, "ne", "null", open],
    [100, "ne", "101", holds],
    [Number("9007199254740993"), "eq", Number("9007199254740992"), holds, "beyond 2^53"],
    ["9007199254740993", "eq", "9007199254740992", no],
    [Number("12345678901234567890"), "ne", "12345678901234567890", open],
    [50, "gt", 49, holds],
    [50, "gt", 50, no, "x is 50, not > 50"],
    [50, "gte", 50, holds],
    [50, "lt", 51, holds],
    [50, "lt", 50, no],
    [50, "lte", 50, holds],
    [51, "lte", 50, no],
    ["10", "gt", "9", holds],
    ["10", "gt", 9, holds],
    [10, "lt", "9", no],
    ["1e3", "gte", 1000, holds],
    ["9007199254740993", "gt", "9007199254740992", holds],
    ["9007199254740992", "lt", "+9007199254740993", holds],
    ["9007199254740993", "lte", "9007199254740993", holds],
    [Number("9007199254740993"), "gt", 1, holds, "beyond 2^53"],
    ["", "gte", 0, open, "which is not a number"],
    [null, "gte", 0, open],
    ["abc", "lt", 5, open],
    ["100%", "gte", 90, open],
    ["2026-11-30", "gt", 5, open],
    [true, "gt", 0, open],
    [[5], "gt", 0, open],
    ["1e999", "gt", 5, open],
    ["it is done", "contains", "is d", holds],
    ["it is done", "contains", "failed", no],
    ["it is DONE", "contains", "done", no, "differs in letter case only"],
    ["it is 5", "contains", 5, open, "needs a string"],
    [["a", { b: 1 }], "contains", { b: 1 }, holds],
    [["a"], "contains", "b", no, "x has 1 item, none is \"b\""],
    [["5"], "contains", 5, open, "the number of the same text"],
    [5, "contains", "5", open, "looks into strings and lists"],
    [null, "contains", "a", open],
    ["error: no", "match", "^error", holds],
    ["no error", "match", "^error", no],
    [42, "match", "^4\\d$", holds],
    [true, "match", "^t", holds],
    [null, "match", "null", open],
    [["a"], "match", "a", open, "looks at strings"],
    [`${"a".repeat(30)}!`, "match", "^(a+)+$", no],
    [null, "exists", true, holds],
    [null, "exists", false, no]
  ]
  for (const [data, is, value, expected, told] of cases) {
    it(`${JSON.stringify(data)} ${is} ${JSON.stringify(value)}: ${expected._tag}`, () => {
      const { _tag, reason } = of(is, value, data)
      assert.strictEqual(_tag, expected._tag)
      if (told !== undefined) assert.include(reason, told)
    })
  }

  it("an absent field leaves all but exists undecided, and says what is there", () => {
    const value = fromJson({ status: "running", progress: 1 })
    for (const is of operators.filter((operator) => operator !== "exists")) {
      assert.deepStrictEqual(verdict({ path: "stauts", is, value: "1" }, value), {
        _tag: "Undecided",
        reason: "path \"stauts\" not found; keys there: status, progress"
      })
    }
    assert.strictEqual(verdict({ path: "stauts", is: "exists", value: true }, value)._tag, "DoesNotHold")
    assert.strictEqual(verdict({ path: "stauts", is: "exists", value: false }, value)._tag, "Holds")
  })

  it("exists without a path holds for any value", () => {
    for (const value of [fromJson(null), fromText(""), fromText("plain"), fromJson([])]) {
      assert.strictEqual(verdict({ is: "exists", value: true }, value)._tag, "Holds")
      assert.strictEqual(verdict({ is: "exists", value: false }, value)._tag, "DoesNotHold")
    }
  })

  it("without a path the whole value is compared", () => {
    assert.strictEqual(verdict({ is: "eq", value: "No matches found" }, fromText("No matches found"))._tag, "Holds")
    assert.strictEqual(verdict({ path: "", is: "match", value: "^No" }, fromText("No matches found"))._tag, "Holds")
    assert.strictEqual(verdict({ path: "$", is: "eq", value: [] }, fromText("[]"))._tag, "Holds")
  })

  it("waits through half-empty replies until the field is there", () => {
    const until = compiled({ path: "status", is: "eq", value: "done" })
    const tags = [{}, {}, { status: "done" }].map((reply) => judge(until, fromJson(reply))._tag)
    assert.deepStrictEqual(tags, ["Undecided", "Undecided", "Holds"])
  })

  it("a text in which the search had to stop decides nothing, nor does its negation", () => {
    const middle = "step 12 running\n".repeat(350_000)
    const condition = { is: "match", value: "exit code [0-9]+" }
    const { _tag, reason } = verdict(condition, fromText(`${middle}exit code 0\n${middle}`))
    assert.strictEqual(_tag, "Undecided")
    assert.include(reason, "takes too long on the value, 11200012 characters")
    assert.strictEqual(verdict({ not: condition }, fromText(middle + middle))._tag, "Undecided")
  })
})

describe("a bare JSON scalar has two readings", () => {
  const cases: ReadonlyArray<readonly [text: string, is: string, value: Json, expected: Expected]> = [
    ["42", "eq", 42, holds],
    ["42", "eq", "42", holds],
    ["42", "ne", 42, no],
    ["42", "ne", "42", no],
    ["42", "eq", 43, no],
    ["42", "ne", "43", holds],
    ["true", "eq", true, holds],
    ["true\n", "eq", "true", holds],
    ["null", "eq", null, holds],
    ["null", "eq", "null", holds],
    ["\"done\"", "eq", "done", holds],
    ["\"done\"", "eq", "\"done\"", holds],
    ["\"done\"", "match", "^done$", holds],
    ["\"done\"", "match", "^\"", holds],
    ["\"done\"", "match", "^fail", no],
    ["\"done\"", "contains", "on", holds],
    ["42", "contains", "4", holds],
    ["42", "contains", "5", no],
    ["null", "match", "null", holds],
    ["42", "gt", 41, holds],
    ["12345678901234567890", "eq", "12345678901234567890", holds]
  ]
  for (const [text, is, value, expected] of cases) {
    it(`${text.trim()} ${is} ${JSON.stringify(value)}: ${expected._tag}`, () => {
      assert.strictEqual(verdict({ is, value }, fromText(text))._tag, expected._tag)
    })
  }
})

describe("combinations", () => {
  const data = fromJson({ a: 1, b: 2 })
  const yes = { path: "a", is: "eq", value: 1 }
  const not = { path: "b", is: "eq", value: 1 }
  const unknown = { path: "c", is: "eq", value: 1 }

  it("follow Kleene's tables", () => {
    const by = [[yes, holds], [not, no], [unknown, open]] as const
    for (const [left, l] of by) {
      for (const [right, r] of by) {
        const tag = (rank: number) => [no, open, holds].find((each) => each.rank === rank)?._tag
        assert.strictEqual(verdict({ and: [left, right] }, data)._tag, tag(Math.min(l.rank, r.rank)))
        assert.strictEqual(verdict({ or: [left, right] }, data)._tag, tag(Math.max(l.rank, r.rank)))
        assert.strictEqual(verdict({ not: left }, data)._tag, tag(1 - l.rank))
      }
    }
  })
  it("tell what decides, and a typo before the rest is true", () => {
    assert.strictEqual(
      verdict({ and: [yes, not, unknown] }, data).reason,
      "b is 2, not 1; path \"c\" not found; keys there: a, b"
    )
    assert.strictEqual(verdict({ and: [yes, unknown] }, data).reason, "path \"c\" not found; keys there: a, b")
    assert.strictEqual(verdict({ or: [yes, not, unknown] }, data).reason, "a is 1")
    assert.strictEqual(verdict({ not: yes }, data).reason, "not: a is 1")
    assert.strictEqual(
      verdict({ or: [not, not, not, not, not] }, data).reason,
      "b is 2, not 1; b is 2, not 1; b is 2, not 1; and 2 more"
    )
  })
  it("keep their reasons short", () => {
    const long = fromJson({ a: "x".repeat(100_000), b: Array.from({ length: 1_000 }, () => "y\n") })
    const many = { and: Array.from({ length: 100 }, () => ({ path: "a", is: "eq", value: "z".repeat(10_000) })) }
    for (
      const condition of [many, { or: [many, { path: "b", is: "eq", value: 1 }] }, { path: "b", is: "gt", value: 1 }]
    ) {
      const { reason } = verdict(condition, long)
      assert.isBelow(reason.length, 1_000)
      assert.notInclude(reason, "\n")
    }
  })
})

describe("what is refused, and what would be right", () => {
  const deep = (levels: number) => {
    let condition: Json = { is: "exists", value: true }
    for (let level = 0; level < levels; level++) condition = { not: condition }
    return condition
  }
  const leaf = { is: "exists", value: true }
  let deepValue: Json = 1
  for (let level = 0; level < 10_000; level++) deepValue = [deepValue]

  const cases: ReadonlyArray<readonly [name: string, condition: unknown, told: string]> = [
    [
      "gt text",
      { and: [leaf, { is: "gt", value: "abc" }] },
      "until.and[1].value: \"gt\" needs a number or a numeric string, got \"abc\""
    ],
    ["gte empty", { is: "gte", value: "" }, "until.value: \"gte\" needs a number"],
    ["lt null", { is: "lt", value: null }, "got null"],
    ["lte percent", { is: "lte", value: "90%" }, "got \"90%\""],
    ["lt date", { is: "lt", value: "2026-11-30" }, "needs a number"],
    ["gt infinity", { is: "gt", value: "1e999" }, "needs a number"],
    ["NaN", { is: "eq", value: Number.NaN }, "a value is JSON"],
    ["function", { is: "eq", value: () => 1 }, "a value is JSON"],
    ["deep value", { is: "eq", value: deepValue }, "nested at most 500"],
    [
      "operator synonym",
      { path: "a", is: "equals", value: 1 },
      "until.is: \"equals\" is not an operator, did you mean \"eq\"?"
    ],
    ["operator sign", { is: ">=", value: 1 }, "did you mean \"gte\"?"],
    ["operator case", { is: "EQ", value: 1 }, "did you mean \"eq\"?"],
    ["operator typo", { is: "contians", value: 1 }, "did you mean \"contains\"?"],
    ["operator slip", { is: "exist", value: true }, "did you mean \"exists\"?"],
    ["operator far off", { is: "resembles", value: 1 }, "there are eq, ne, gt, gte, lt, lte, contains, match, exists"],
    ["operator long", { is: "x".repeat(10_000), value: 1 }, "is not an operator; there are"],
    ["operator no text", { is: 5, value: 1 }, "5 is not an operator"],
    ["operator built in", { is: "constructor", value: 1 }, "is not an operator; there are"],
    ["no operator", { path: "a", value: 1 }, "\"is\" is missing"],
    ["no value", { path: "a", is: "eq" }, "\"value\" is missing"],
    ["exists without truth", { path: "a", is: "exists", value: "yes" }, "\"exists\" needs true or false, got \"yes\""],
    ["match number", { is: "match", value: 5 }, "\"match\" needs a regular expression as a string, got 5"],
    ["bad pattern", { is: "match", value: "([" }, "until.value:"],
    [
      "look-ahead",
      { not: { is: "match", value: "^(?!x)" } },
      "until.not.value: negative look-ahead (?!…) is not supported; write {\"not\": {"
    ],
    ["back-reference", { is: "match", value: "(a)\\1" }, "back-reference"],
    [
      "wildcard",
      { path: "jobs[*].x", is: "eq", value: 1 },
      "until.path: wildcards (*) are not supported; name one index, such as [0] (column 5 of"
    ],
    ["filter", { path: "jobs[?(@.x)]", is: "eq", value: 1 }, "filters are not supported"],
    ["slice", { path: "jobs[0:2]", is: "eq", value: 1 }, "slices are not supported"],
    ["path no text", { path: 5, is: "eq", value: 1 }, "until.path: a path is a string, got 5"],
    ["mixed", { and: [leaf], or: [leaf] }, "\"and\" stands alone in its object; \"or\" cannot be beside it"],
    ["mixed leaf", { not: leaf, path: "a" }, "\"path\" cannot be beside it"],
    ["unknown key", { path: "a", is: "eq", value: 1, flags: "i" }, "\"flags\" is not part of a condition"],
    [
      "__proto__",
      JSON.parse("{\"__proto__\":{\"is\":\"exists\"},\"is\":\"exists\",\"value\":true}"),
      "\"__proto__\" is not part"
    ],
    ["empty and", { and: [] }, "until.and: the list is empty"],
    ["empty or", { not: { or: [] } }, "until.not.or: the list is empty"],
    ["and no list", { and: leaf }, "until.and: a list of conditions is needed"],
    ["not of nothing", { not: undefined }, "until.not: a condition is an object such as"],
    ["a list", [leaf], "a condition is an object"],
    ["a text", "status == done", "got \"status == done\""],
    ["a function", () => 1, "got a function that is no JSON"],
    ["nothing", undefined, "got nothing"],
    ["3000 levels", deep(3_000), "64 levels deep"],
    [
      "patterns that are large together",
      { or: Array.from({ length: 100 }, (_, at) => ({ is: "match", value: `a{900}${at}` })) },
      "the patterns of a condition have more than 10000 parts together"
    ],
    ["path with a line end", { path: "a\nb", is: "eq", value: 1 }, "of \"a b\""],
    ["too many parts", { or: Array.from({ length: 2_000 }, () => leaf) }, "1000 parts"]
  ]
  for (const [name, condition, told] of cases) {
    it(name, () => {
      assert.include(refusal(condition), told)
      assert.isBelow(refusal(condition).length, 600)
    })
  }
  it("64 levels are fine", () => assert.strictEqual(refusal(deep(64)), "accepted"))
  it("the field is named", () => {
    const refused = Either.flip(compile({ and: [1] }, "fail_when"))
    assert.strictEqual(Either.getOrThrow(refused).field, "fail_when")
    assert.include(Either.getOrThrow(refused).message, "fail_when.and[0]: ")
  })
})

describe("values of any size and shape", () => {
  it("10,000 levels compare without exhausting the stack", () => {
    const nested = (end: string): ToolValue => fromText(`${"{\"a\":[".repeat(5_000)}${end}${"]}".repeat(5_000)}`)
    const value = nested("1")
    for (const is of ["eq", "ne", "contains", "match", "gt", "exists"]) {
      assert.isString(verdict({ is, value: is === "exists" ? true : "1" }, value).reason)
    }
    assert.strictEqual(verdict({ path: "a[0]", is: "contains", value: "1" }, value)._tag, "Undecided")
  })
  it("keys named like built-in ones are only keys", () => {
    const value = fromText("{\"__proto__\":{\"status\":\"done\"},\"constructor\":1}")
    assert.strictEqual(verdict({ path: "status", is: "eq", value: "done" }, value)._tag, "Undecided")
    assert.strictEqual(verdict({ path: "__proto__.status", is: "eq", value: "done" }, value)._tag, "Holds")
    assert.strictEqual(
      verdict({ is: "eq", value: JSON.parse("{\"__proto__\":{\"status\":\"x\"},\"constructor\":1}") }, value)._tag,
      "DoesNotHold"
    )
    assert.strictEqual(verdict({ path: "toString", is: "exists", value: true }, fromJson({}))._tag, "DoesNotHold")
  })
})

const json = FastCheck.jsonValue().map((value): Json => JSON.parse(JSON.stringify(value)))
const names = FastCheck.constantFrom("a", "b", "c", "a.b", "a[0]", "b[-1].c", "[0]", "")
const scalar: FastCheck.Arbitrary<Json> = FastCheck.constantFrom<Array<Json>>(
  0,
  1,
  "1",
  "a",
  "A",
  null,
  true,
  "true",
  "",
  [1],
  { c: 1 }
)
const small: FastCheck.Arbitrary<Json> = FastCheck.oneof(
  FastCheck.dictionary(FastCheck.constantFrom("a", "b", "c"), FastCheck.oneof(scalar, FastCheck.array(scalar))),
  FastCheck.array(scalar),
  scalar,
  json
)
const leaf: FastCheck.Arbitrary<Json> = FastCheck.oneof(
  FastCheck.record({ path: names, is: FastCheck.constantFrom("eq", "ne", "contains"), value: scalar }),
  FastCheck.record({
    path: names,
    is: FastCheck.constantFrom("gt", "gte", "lt", "lte"),
    value: FastCheck.oneof(FastCheck.integer(), FastCheck.constant("1"))
  }),
  FastCheck.record({
    path: names,
    is: FastCheck.constant("match"),
    value: FastCheck.constantFrom("a", "^1$", "[a-c]+", "(?i)TRUE")
  }),
  FastCheck.record({ path: names, is: FastCheck.constant("exists"), value: FastCheck.boolean() })
)
const condition: FastCheck.Arbitrary<Json> = FastCheck.letrec<{ node: Json }>((tie) => ({
  node: FastCheck.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    FastCheck.record({ not: tie("node") }),
    FastCheck.record({ and: FastCheck.array(tie("node"), { minLength: 1, maxLength: 3 }) }),
    FastCheck.record({ or: FastCheck.array(tie("node"), { minLength: 1, maxLength: 3 }) })
  )
})).node
const value = FastCheck.oneof(
  small.map(fromJson),
  small.map((data) => fromText(JSON.stringify(data))),
  FastCheck.string().map(fromText)
)

/** Where the platform's own search takes n × m steps: minutes for these. */
describe("repetitive texts", () => {
  const text = fromText("a".repeat(2_000_000))
  const part = `${"a".repeat(25_000)}b${"a".repeat(25_000)}`
  const within = (millis: number, run: () => void) => {
    const start = performance.now()
    run()
    assert.isBelow(performance.now() - start, millis)
  }

  it("contains and a literal match take linear time", () => {
    within(2_000, () => assert.strictEqual(verdict({ is: "contains", value: part }, text)._tag, "DoesNotHold"))
    within(2_000, () => {
      assert.strictEqual(verdict({ is: "match", value: part.slice(24_500, 25_800) }, text)._tag, "DoesNotHold")
    })
  })
  it.prop(
    "contains finds what the platform finds",
    [
      FastCheck.array(FastCheck.constantFrom("a", "b"), { maxLength: 120 }),
      FastCheck.array(FastCheck.constantFrom("a", "b"), { maxLength: 24 }),
      FastCheck.integer({ min: 1, max: 3 })
    ],
    ([whole, letters, times]) => {
      const [text, part] = [whole.join(""), letters.join("").repeat(times)]
      assert.strictEqual(of("contains", part, text)._tag, text.includes(part) ? "Holds" : "DoesNotHold")
      assert.strictEqual(of("contains", part, `${text}${part}${text}`)._tag, "Holds")
    },
    { fastCheck: { numRuns: 1_000 } }
  )
  it("a condition of many searches ends as undecided, not late", () => {
    const many = (data: ToolValue) =>
      verdict({ or: Array.from({ length: 900 }, (_, at) => ({ is: "contains", value: `word ${at}` })) }, data)
    for (const data of [text, fromJson(Array.from({ length: 300_000 }, (_, at) => ({ at })))]) {
      within(3_000, () => {
        const { _tag, reason } = many(data)
        assert.strictEqual(_tag, "Undecided")
        assert.include(reason, "the condition takes too long on the value")
      })
    }
  })
})

describe("laws", () => {
  const same = (left: Json, right: Json, seen: ToolValue) =>
    assert.strictEqual(verdict(left, seen)._tag, verdict(right, seen)._tag)

  it.prop("double negation", [condition, value], ([c, v]) => same({ not: { not: c } }, c, v))
  it.prop("De Morgan", [condition, condition, value], ([a, b, v]) => {
    same({ not: { and: [a, b] } }, { or: [{ not: a }, { not: b }] }, v)
    same({ not: { or: [a, b] } }, { and: [{ not: a }, { not: b }] }, v)
  })
  it.prop("and, or in any order", [condition, condition, value], ([a, b, v]) => {
    same({ and: [a, b] }, { and: [b, a] }, v)
    same({ or: [a, b] }, { or: [b, a] }, v)
  })
  it.prop("identity, absorption and idempotence", [condition, condition, value], ([a, b, v]) => {
    same({ and: [a, { is: "exists", value: true }] }, a, v)
    same({ or: [a, { is: "exists", value: false }] }, a, v)
    same({ and: [a, { or: [a, b] }] }, a, v)
    same({ and: [a, a] }, a, v)
  })
  it.prop("ne is the negation of eq", [names, scalar, value], ([path, expected, v]) => {
    same({ path, is: "ne", value: expected }, { not: { path, is: "eq", value: expected } }, v)
  })
  it.prop("a value equals itself, and exists", [json], ([data]) => {
    assert.strictEqual(of("eq", data, data)._tag, "Holds")
    assert.strictEqual(of("exists", true, data)._tag, "Holds")
  })
  it.prop("any JSON compiles or is refused, in a short text", [FastCheck.anything()], ([input]) => {
    assert.isString(refusal(input))
  })
  it.prop(
    "ten thousand conditions and values: never an exception, always a short reason on one line",
    [condition, value],
    ([c, v]) => {
      const { reason } = verdict(c, v)
      assert.isBelow(reason.length, 1_000)
      assert.notMatch(reason, /[\p{Cc}\p{Zl}\p{Zp}]/u)
    },
    { fastCheck: { numRuns: 10_000 } }
  )
  it.prop("a condition is judged the same after it was written out and read again", [condition, value], ([c, v]) => {
    const first = compiled(c)
    const again = compiled(JSON.parse(JSON.stringify(first.source)))
    assert.deepStrictEqual(again.source, first.source)
    assert.deepStrictEqual(judge(again, v), judge(first, v))
  })
})
