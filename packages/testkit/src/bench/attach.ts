import * as Effect from "effect/Effect"
import type { Figure } from "./Figure.js"
import { startHost } from "./Host.js"
import { median, quantile } from "./Machine.js"
import { makeTicks } from "./Ticks.js"

const sentinels = 60

/** From the moment at which the server answers that the job is done, to the moment at which attach has returned it. */
export const attachLatency = Effect.gen(function*() {
  const ticks = yield* makeTicks
  const host = yield* startHost({ ticks })
  const one = Effect.fnUntraced(function*(id: number) {
    yield* Effect.sleep(id * 53)
    const sentinel = yield* host.poll({
      server: "ticks",
      tool: "tick",
      args: { id, calls: 3 },
      interval: 1_000,
      until: { path: "status", is: "eq", value: "done" }
    })
    const text = yield* host.call("mcp_sentinel_attach", { id: sentinel })
    const now = performance.timeOrigin + performance.now()
    return now - Number(/"at":([\d.]+)/.exec(text)?.[1])
  })
  const latencies = yield* Effect.forEach(Array.from({ length: sentinels }, (_, id) => id), one, {
    concurrency: "unbounded"
  })
  const scenario = "attach"
  const figures: ReadonlyArray<Figure> = [
    { scenario, name: "end to reply, median", value: median(latencies), unit: "ms", atMost: 5 },
    { scenario, name: "end to reply, p95", value: quantile(latencies, 0.95), unit: "ms", atMost: 20 }
  ]
  return figures
}).pipe(Effect.scoped)
