import * as Effect from "effect/Effect"
import type { Figure } from "./Figure.js"

type Call = (...args: ReadonlyArray<unknown>) => unknown

const isCall = (value: unknown): value is Call => typeof value === "function"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** The built core beside this package, of which the test kit is no user otherwise. */
const core = new URL("../../../core/dist/Condition.js", import.meta.url)

const load = Effect.promise(async (): Promise<Readonly<Record<string, unknown>>> => await import(core.href))

const conditions = {
  equality: { path: "status", is: "eq", value: "done" },
  logic: {
    or: [
      { path: "status", is: "eq", value: "done" },
      { and: [{ path: "progress", is: "gte", value: 99 }, { not: { path: "errors", is: "exists", value: true } }] }
    ]
  },
  pattern: { path: "log", is: "match", value: "^finished in \\d+ s$" }
}

const value = {
  json: { status: "running", progress: 42, log: "step 17 of 40, nothing to say about it so far" },
  raw: ""
}

const window = 500

/** Judgements that one core makes in a second. */
export const judgements = Effect.gen(function*() {
  const { compile, judge } = yield* load
  if (!isCall(compile) || !isCall(judge)) return yield* Effect.dieMessage("core has no Condition.compile and judge")
  return Object.entries(conditions).map(([name, source]): Figure => {
    const compiled = compile(source, "until")
    const condition = isRecord(compiled) ? compiled["right"] : undefined
    if (condition === undefined) throw new Error(`${name} is no condition`)
    for (let warm = 0; warm < 20_000; warm++) judge(condition, value)
    const from = performance.now()
    let count = 0
    while (performance.now() - from < window) {
      for (let batch = 0; batch < 100; batch++) judge(condition, value)
      count += 100
    }
    return { scenario: "conditions", name, value: (count / (performance.now() - from)) * 1_000, unit: "/s" }
  })
})
