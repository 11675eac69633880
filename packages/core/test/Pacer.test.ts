import { assert, describe, it } from "@effect/vitest"
import { Pacer } from "../src/internal/Pacer.js"

const crowd = (pacer: Pacer, size: number, now: number, millis: number) =>
  Array.from({ length: size }, () => now + pacer.pause(now, millis))

const countBy = (times: ReadonlyArray<number>) =>
  times.reduce((counts, time) => counts.set(time, (counts.get(time) ?? 0) + 1), new Map<number, number>())

describe("Pacer", () => {
  it("leaves a few polls alone", () => {
    assert.deepStrictEqual(new Set(crowd(new Pacer(), 200, 5_003, 1_001)), new Set([6_004]))
  })

  it("gathers a crowd into slots of 20 ms, and never shortens a pause", () => {
    const pacer = new Pacer()
    crowd(pacer, 200, 5_003, 1_000)
    for (let now = 5_004; now < 5_900; now += 7) {
      const wake = now + pacer.pause(now, 1_000)
      assert.strictEqual(wake % 20, 0)
      assert.isAtLeast(wake, now + 1_000)
      assert.isAtMost(wake, now + 1_000 + 20 + 50)
    }
  })

  it("spreads what would come at once, within 5 % of the pause", () => {
    const pacer = new Pacer()
    const times = crowd(pacer, 1_000, 20_000, 10_000).slice(200)
    assert.isAtLeast(countBy(times).size, 10)
    assert.isAtMost(Math.max(...times), 30_000 + 20 + 500)
  })

  it("forgets polls that have come, however long ago", () => {
    const pacer = new Pacer()
    crowd(pacer, 500, 0, 1_000)
    assert.strictEqual(pacer.pause(2_000, 1_001), 1_001)
    crowd(pacer, 500, 2_000, 1_000)
    assert.strictEqual(pacer.pause(10_000_000, 1_001), 1_001)
  })

  it("does not book what is hours away", () => {
    const pacer = new Pacer()
    crowd(pacer, 500, 0, 1_000)
    assert.strictEqual(pacer.pause(1, 7_200_001), 7_200_001)
  })
})
