import { assert, describe, it } from "@effect/vitest"
import { noticesOf, scripted, seeded } from "../src/bench/faults.js"
import { boundOf, type Figure, holds, shown } from "../src/bench/Figure.js"
import { median, quantile } from "../src/bench/Machine.js"
import { pictureOf } from "../src/bench/Picture.js"

const figure = (overrides: Partial<Figure>): Figure => ({ scenario: "s", name: "n", value: 1, unit: "×", ...overrides })

describe("figures", () => {
  it("hold within their bounds, and never when nothing was measured", () => {
    assert.isTrue(holds(figure({ value: 2, atMost: 2 })))
    assert.isFalse(holds(figure({ value: 2.01, atMost: 2 })))
    assert.isFalse(holds(figure({ value: 0.66, atLeast: 0.67 })))
    assert.isFalse(holds(figure({ value: Number.NaN })))
  })

  it("are shown with their unit", () => {
    assert.strictEqual(shown(figure({ value: 1.2345 })), "1.23×")
    assert.strictEqual(shown(figure({ value: 12_345.6, unit: "/s" })), "12,346 /s")
    assert.strictEqual(boundOf(figure({ atMost: 1.5 })), "≤ 1.5 ×")
  })

  it("quantiles", () => {
    assert.strictEqual(median([3, 1, 2]), 2)
    assert.strictEqual(quantile([1, 2, 3, 4], 0.95), 4)
    assert.isNaN(median([]))
  })
})

describe("picture", () => {
  it("shows what has a bound, and marks what breaks it", () => {
    const svg = pictureOf([
      figure({ name: "kept", atMost: 2 }),
      figure({ name: "broken <b>", value: 3, atMost: 2 }),
      figure({ name: "unbounded" })
    ])
    assert.include(svg, "s: kept")
    assert.include(svg, "broken &lt;b>")
    assert.notInclude(svg, "unbounded")
    assert.lengthOf(svg.match(/class="ok"/g) ?? [], 1)
    assert.lengthOf(svg.match(/class="broken"/g) ?? [], 1)
    assert.include(svg, "prefers-color-scheme:dark")
  })
})

describe("faults", () => {
  const scripts = (seed: number) => {
    const random = seeded(seed)
    return Array.from({ length: 200 }, () => scripted(random, "stdio"))
  }

  it("are the same for the same seed, and others for another", () => {
    assert.deepStrictEqual(scripts(7), scripts(7))
    assert.notDeepEqual(scripts(7), scripts(8))
  })

  it("begin with a good look and stay at their end", () => {
    const all = scripts(7)
    for (const { steps } of all) assert.deepStrictEqual(steps[0], { json: { status: "running" } })
    assert.sameMembers([...new Set(all.map(({ end }) => end))], [
      "completed",
      "failed",
      "error",
      "timeout",
      "cancelled"
    ])
    for (const { end, steps } of all) {
      if (end === "completed") assert.deepStrictEqual(steps.at(-1), { json: { status: "done" } })
    }
  })

  it("leave a notice due for what no reply tells, and for nothing that is cancelled", () => {
    for (const script of scripts(7)) {
      assert.strictEqual(noticesOf(script), script.learnt !== "attach" && script.end !== "cancelled" ? 1 : 0)
    }
    assert.sameMembers([...new Set(scripts(7).map(({ learnt }) => learnt))], ["attach", "notice", "abandoned attach"])
  })
})
