import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Pattern from "../src/Pattern.js"

const search = (source: string, text: string): Pattern.Found =>
  Either.getOrThrowWith(Pattern.compile(source), (problem) => new Error(problem)).search(text, Pattern.newBudget())

const problem = (source: string): string =>
  Either.match(Pattern.compile(source), { onLeft: (message) => message, onRight: () => `${source} was accepted` })

/** Letters in an order that drives a pattern into ever new states; the same in every run. */
const scrambled = (length: number): string => {
  let seed = 12_345
  return Array.from({ length }, () => {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
    return (seed >> 16) % 2 === 0 ? "a" : "b"
  }).join("")
}

const took = (run: () => void): number => {
  const start = performance.now()
  run()
  return performance.now() - start
}

describe("notation", () => {
  const means: ReadonlyArray<readonly [pattern: string, text: string, found: boolean]> = [
    ["done", "is done.", true],
    ["", "anything", true],
    ["^error", "error: x", true],
    ["^error", "no error", false],
    ["done$", "done\n", false],
    ["^b", "a\nb", false],
    ["(?m)^b", "a\nb", true],
    ["(?i)DONE", "done", true],
    ["(?i:D)one", "done", true],
    ["a(?-i)b", "ab", true],
    ["a.b", "a\nb", false],
    ["a.b", "a\u2028b", false],
    ["(?s)a.b", "a\nb", true],
    ["(?s:a.)(?-s:.)", "a\n\n", false],
    ["(?s:a.)b", "a\nb", true],
    ["^.$", "😀", true],
    ["a\\/b\\-\\_\\é\\ ", "a/b-_é ", true],
    ["\\u0041\\x42\\u{43}\\x{44}", "ABCD", true],
    ["\\uD83D\\uDE00", "😀", true],
    ["\\cJ\\0", "\n\0", true],
    ["\\t\\n\\v\\f\\r", "\t\n\v\f\r", true],
    ["^\\s$", "\u00a0", true],
    ["^\\S$", "\u00a0", false],
    ["^[\\s]$", "\u2003", true],
    ["^[\\S]$", "\v", false],
    ["[\\s\\S]done", "\ndone", true],
    ["^[\\w-z]$", "-", true],
    ["^[\\s-z]$", "-", true],
    ["^[\\d-]$", "-", true],
    ["^[\\b]$", "\b", true],
    ["^[[]$", "[", true],
    ["^[^\\]a-]$", "b", true],
    ["^[[:digit:]]$", "7", true],
    ["[^]", "\n", true],
    ["[]", "a", false],
    ["\\bdone\\b", "undone", false],
    ["\\Bone\\b", "done", true],
    ["\\d", "٣", false],
    ["^\\w\\W\\D$", "a-b", true],
    ["(?<year>\\d{4})-(?P<month>\\d\\d)", "2026-11", true],
    ["^(?:a|b){2,3}?$", "abb", true],
    ["^(ab)+?$", "abab", true],
    ["a{,5}", "a{,5}", true],
    ["x{1", "x{1", true],
    ["^\\p{Lu}\\P{L}\\pN$", "É-1", true],
    ["\\p{Script=Greek}\\p{gc=Lu}", "αA", true],
    ["(?i)(?:)a", "A", true],
    ["\\\\", "\\", true]
  ]
  for (const [pattern, text, found] of means) {
    it(`${JSON.stringify(pattern)} ${found ? "is found" : "is not found"} in ${JSON.stringify(text)}`, () => {
      assert.strictEqual(search(pattern, text), found ? "yes" : "no")
    })
  }

  const atom = FastCheck.constantFrom(
    "a",
    "b",
    "1",
    " ",
    ".",
    "\\d",
    "\\s",
    "\\w",
    "\\S",
    "[ab]",
    "[^a]",
    "[\\s1]",
    "\\b",
    "^",
    "$"
  )
  const pattern = FastCheck.letrec<{ pattern: string }>((tie) => ({
    pattern: FastCheck.oneof(
      { depthSize: "small" },
      atom,
      FastCheck.array(tie("pattern"), { maxLength: 4 }).map((parts) => parts.join("")),
      FastCheck.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => `(${left}|${right})`),
      FastCheck.tuple(tie("pattern"), FastCheck.constantFrom("*", "+", "?", "{1,2}", "*?"))
        .map(([part, times]) => `(?:${part})${times}`)
    )
  })).pattern
  it.prop(
    "finds what JavaScript finds",
    [
      pattern,
      FastCheck.array(FastCheck.constantFrom("a", "b", "1", " ", "\n", "é", "\u00a0", "😀"), { maxLength: 12 })
    ],
    ([source, letters]) => {
      const text = letters.join("")
      assert.strictEqual(
        search(source, text),
        new RegExp(source, "u").test(text) ? "yes" : "no",
        `${source} on ${text}`
      )
    },
    { fastCheck: { numRuns: 1_000 } }
  )
  it.prop("never throws", [FastCheck.string({ unit: "binary" }), FastCheck.string()], ([source, text]) => {
    Either.map(Pattern.compile(source), (compiled) => compiled.search(text, Pattern.newBudget()))
  })
})

describe("what is refused", () => {
  const refused: ReadonlyArray<readonly [pattern: string, told: string]> = [
    ["a(?=b)", "look-ahead"],
    ["^(?!.*running)", "{\"not\": {"],
    ["(?<=a)b", "look-behind"],
    ["(?<!a)b", "{\"not\": {"],
    ["(a)\\1", "back-reference \\1"],
    ["(?<n>a)\\k<n>", "back-reference \\k"],
    ["(?P<n>a)(?P=n)", "back-references ((?P=…))"],
    ["(?>a)", "atomic groups"],
    ["(?#x)a", "comments"],
    ["(?U)a", "the group"],
    ["([", "] is missing"],
    ["(a", "a ) is missing"],
    ["a)", "closes no group"],
    ["a\\", "backslash"],
    ["[a\\", "backslash"],
    ["[\\1]", "back-reference"],
    ["*a", "missing argument to repetition operator"],
    ["a++", "invalid nested repetition operator"],
    ["a{1001}", "invalid repeat count"],
    ["(?:a{100}){100}", "2000 parts"],
    ["\\Adone", "write ^"],
    ["done\\Z", "write $"],
    ["\\h", "\\h is not known"],
    ["[\\B]", "\\B is not known"],
    ["\\p{Nonsense}", "\\p{Nonsense}"],
    ["a".repeat(2_001), "more than 2000"]
  ]
  for (const [pattern, told] of refused) {
    it(pattern.slice(0, 40), () => assert.include(problem(pattern), told))
  }
})

describe("time", () => {
  it("a catastrophic pattern is harmless", () => {
    const text = `${"a".repeat(30)}!`
    const times = [1, 2, 3].map(() => took(() => assert.strictEqual(search("^(a+)+$", text), "no")))
    assert.isBelow(Math.min(...times), 100)
  })

  it("a literal is found in a text of any size", () => {
    assert.strictEqual(search("it is done", `${"x".repeat(12_000_000)}it is done`), "yes")
    assert.strictEqual(search("it is done", "x".repeat(12_000_000)), "no")
  })

  it("1 MB is searched whole", () => {
    const text = "step 12 running, 40 percent\n".repeat(40_000)
    assert.strictEqual(search("step \\d+ done", text), "no")
    assert.strictEqual(search("step \\d+ done$", `${text}step 13 done`), "yes")
  })

  it("of 10 MB the ends are searched, and what may be between is unknown, not absent", () => {
    const middle = "step 12 running\n".repeat(350_000)
    assert.strictEqual(search("^ste[p] 1 done", `step 1 done\n${middle}${middle}`), "yes")
    assert.strictEqual(search("exit code [0-9]+$", `${middle}${middle}exit code 0`), "yes")
    assert.strictEqual(search("exit code [0-9]+", `${middle}exit code 0\n${middle}`), "unknown")
  })

  it("what is cut off before a part still counts as its context", () => {
    const words = "x".repeat(10_000_000)
    assert.strictEqual(search("\\bx+!$", `${words}!`), "unknown")
    assert.strictEqual(search("\\b!", `${words}!`), "yes")
    assert.strictEqual(search("\\B!", `${words}!`), "unknown")
    assert.strictEqual(search("(?m)^x+!$", `${"xxxxxxx\n".repeat(1_000_000)}x!`), "yes")
  })

  it("a pattern and a text that multiply states end as unknown, in bounded time", () => {
    const text = scrambled(1_000_000)
    for (
      const pattern of ["a[ab]{14}[de]", "a[ab]{200}[de][xy]", "(?:[ab]{0,30}a){1,30}[de]", "\\b[ab]*a[ab]{300}[de]"]
    ) {
      const compiled = Either.getOrThrow(Pattern.compile(pattern))
      const first = took(() => assert.strictEqual(compiled.search(text, Pattern.newBudget()), "unknown"))
      const again = took(() => assert.strictEqual(compiled.search(text, Pattern.newBudget()), "unknown"))
      // 20 to 90 ms when nothing else runs; unbounded it would be 7 s and more
      assert.isBelow(first + again, 2_000, pattern)
    }
  })

  it("a match is found after more states than the engine keeps", () => {
    const text = scrambled(4_500)
    const compiled = Either.getOrThrow(Pattern.compile("a[ab]{14}[cd]"))
    assert.strictEqual(compiled.search(text, Pattern.newBudget()), "no")
    assert.strictEqual(compiled.search(`${text.slice(9)}a${"b".repeat(14)}c`, Pattern.newBudget()), "yes")
  })

  it("one budget serves all patterns of a judgement", () => {
    const budget = Pattern.newBudget()
    const compiled = Either.getOrThrow(Pattern.compile("exit code [0-9]"))
    const text = "x".repeat(1_500_000)
    assert.deepStrictEqual([1, 2, 3].map(() => compiled.search(text, budget)), ["no", "no", "unknown"])
  })
})
