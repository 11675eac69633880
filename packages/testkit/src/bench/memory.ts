import * as Effect from "effect/Effect"
import type { Figure } from "./Figure.js"
import { startHost } from "./Host.js"
import { usageOf } from "./Machine.js"
import { makeTicks } from "./Ticks.js"

const sentinels = 10
const bytes = 500_000

/** ms until 10 values of 500 KB a second have filled the 64 MiB of the poll logs, twice over */
const filling = 20_000
const sample = 500
const samples = 45

/** Memory that is not given back shows in the floor: garbage that waits for its collection does not. */
const floor = (values: ReadonlyArray<number>) => Math.min(...values)

/** Changing results of 500 KB, after the limits of the poll logs are reached. */
export const memory = Effect.gen(function*() {
  const ticks = yield* makeTicks
  const host = yield* startHost({ ticks })
  yield* Effect.forEach(Array.from({ length: sentinels }, (_, id) => id), (id) =>
    host.poll({
      server: "ticks",
      tool: "tick",
      args: { id, bytes },
      interval: 1_000,
      until: { path: "status", is: "eq", value: "done" }
    }), { concurrency: "unbounded", discard: true })
  yield* Effect.sleep(filling)
  const rss: Array<number> = []
  for (let taken = 0; taken < samples; taken++) {
    rss.push((yield* usageOf(host.pid)).rss)
    yield* Effect.sleep(sample)
  }
  const third = Math.floor(samples / 3)
  const early = floor(rss.slice(0, third))
  const late = floor(rss.slice(-third))
  const scenario = "memory"
  const figures: ReadonlyArray<Figure> = [
    {
      scenario,
      name: "growth after the limits",
      value: Math.max(0, (late / early - 1) * 100),
      unit: "%",
      atMost: 5,
      note: "of the lowest RSS, first against last third; 5 % is what the collector's timing alone makes"
    },
    { scenario, name: "RSS, lowest", value: late, unit: "MB" },
    { scenario, name: "RSS, highest", value: Math.max(...rss), unit: "MB" }
  ]
  return figures
}).pipe(Effect.scoped)
