import * as Effect from "effect/Effect"
import type { Figure } from "./Figure.js"
import { callTool, connect, startHost } from "./Host.js"
import { median, quantile } from "./Machine.js"
import { makeTicks } from "./Ticks.js"

const sentinels = 60

const hasEnded = { path: "status", is: "eq", value: "done" }

const numbers = Array.from({ length: sentinels }, (_, id) => id)

/** ms since a server wrote its `at` into this text. */
const since = (text: string): number =>
  performance.timeOrigin + performance.now() - Number(/"at":([\d.]+)/.exec(text)?.[1])

/** What one answer takes from the same kind of server to a client of the SDK, while the sentinels run. */
const plainCalls = Effect.gen(function*() {
  const { args, command } = yield* makeTicks
  const { client } = yield* connect(command, args)
  return yield* Effect.forEach(numbers, () => Effect.delay(Effect.map(callTool(client, "tick", {}), since), 73))
})

/** After a first round that starts the server and warms the code: from the moment at which the server answers that the job is done, to the moment at which attach has returned it. */
const attaches = Effect.gen(function*() {
  const host = yield* startHost({ ticks: yield* makeTicks })
  const attach = Effect.fnUntraced(function*(id: number) {
    const sentinel = yield* host.poll({
      server: "ticks",
      tool: "tick",
      args: { id, calls: 3 },
      interval: 1_000,
      until: hasEnded
    })
    return since(yield* host.call("mcp_sentinel_attach", { id: sentinel }))
  })
  yield* Effect.forEach(numbers, (id) => attach(sentinels + id), { concurrency: "unbounded" })
  return yield* Effect.forEach(numbers, (id) => Effect.delay(attach(id), id * 53), { concurrency: "unbounded" })
})

/** The bounds are those of a quiet machine: what a plain call takes at the same time comes on top. */
export const attachLatency = Effect.gen(function*() {
  const [own, plain] = yield* Effect.all([attaches, plainCalls], { concurrency: 2 })
  const scenario = "attach"
  const figures: ReadonlyArray<Figure> = [
    { scenario, name: "end to reply, median", value: median(own), unit: "ms", atMost: 5 + median(plain) },
    { scenario, name: "end to reply, p95", value: quantile(own, 0.95), unit: "ms", atMost: 20 + quantile(plain, 0.95) },
    { scenario, name: "plain call, median", value: median(plain), unit: "ms" },
    { scenario, name: "plain call, p95", value: quantile(plain, 0.95), unit: "ms" }
  ]
  return figures
}).pipe(Effect.scoped)
