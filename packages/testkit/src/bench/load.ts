import * as Effect from "effect/Effect"
import type { Figure } from "./Figure.js"
import { type Host, startHost } from "./Host.js"
import { median, quantile, type Usage, usageOf } from "./Machine.js"
import { makeTicks, startBareLoop, type Ticks } from "./Ticks.js"

const interval = 1_000

/** What one poller did during the window. */
interface Load {
  /** polls per second */
  readonly rate: number
  /** µs of CPU time for each poll */
  readonly cpu: number
  readonly rss: number
  /** ms that the last pauses lasted */
  readonly pauses: ReadonlyArray<number>
}

const count = (ticks: Ticks, pid: number) =>
  Effect.all({
    calls: Effect.map(ticks.metrics, ({ calls }) => calls),
    usage: usageOf(pid),
    at: Effect.sync(() => performance.now())
  })

interface Count {
  readonly calls: number
  readonly usage: Usage
  readonly at: number
}

const between = (from: Count, to: Count, pauses: ReadonlyArray<number>): Load => ({
  rate: ((to.calls - from.calls) / (to.at - from.at)) * 1_000,
  cpu: ((to.usage.cpu - from.usage.cpu) / (to.calls - from.calls)) * 1_000,
  rss: to.usage.rss,
  pauses
})

/** Looks at pollers that run already, all at the same time. */
const observe = (window: number, pollers: ReadonlyArray<{ readonly ticks: Ticks; readonly pid: number }>) =>
  Effect.gen(function*() {
    const from = yield* Effect.forEach(pollers, ({ pid, ticks }) => count(ticks, pid))
    yield* Effect.sleep(window)
    return yield* Effect.forEach(pollers, ({ pid, ticks }, index) =>
      Effect.gen(function*() {
        const to = yield* count(ticks, pid)
        const { pauses } = yield* ticks.metrics
        return between(from[index] ?? to, to, pauses)
      }))
  })

const until = { path: "status", is: "eq", value: "done" }

const submit = (host: Host, id: number, calls?: number) =>
  host.poll({ server: "ticks", tool: "tick", args: { id, calls }, interval, until })

const submitAll = (host: Host, sentinels: number) =>
  Effect.forEach(Array.from({ length: sentinels }, (_, id) => id), (id) => submit(host, id), {
    concurrency: 200,
    discard: true
  })

/** ms that a crowd needs until its caches are warm and its start is forgotten */
const settling = 4_000

const startSentinels = Effect.fn("startSentinels")(function*(sentinels: number) {
  const ticks = yield* makeTicks
  const host = yield* startHost({ ticks })
  // one that ends at once: the server is started, and its start is in no figure
  yield* submit(host, sentinels, 1)
  const from = performance.now()
  yield* submitAll(host, sentinels)
  return { ticks, pid: host.pid, submitted: (sentinels / (performance.now() - from)) * 1_000 }
})

const startBare = Effect.fn("startBare")(function*(loops: number) {
  const ticks = yield* makeTicks
  return { ticks, pid: yield* startBareLoop(loops, interval, ticks) }
})

const pair = Effect.fn("pair")(function*(sentinels: number, window: number) {
  const bare = yield* startBare(sentinels)
  const own = yield* startSentinels(sentinels)
  yield* Effect.sleep(settling)
  const [bareLoad, ownLoad] = yield* observe(window, [bare, own])
  return bareLoad === undefined || ownLoad === undefined
    ? yield* Effect.dieMessage("nothing was observed")
    : { bare: bareLoad, own: ownLoad, submitted: own.submitted }
}, Effect.scoped)

const nameOf = (sentinels: number) => `${sentinels.toLocaleString("en")} sentinels`

/** Side by side with the bare loop, each with a server of its own. */
export const sideBySide = (
  sentinels: number,
  window: number,
  bounds: { readonly cpu?: number; readonly rss?: number }
) =>
  Effect.map(pair(sentinels, window), ({ bare, own, submitted }): ReadonlyArray<Figure> => {
    const scenario = nameOf(sentinels)
    return [
      {
        scenario,
        name: "CPU per poll ÷ bare loop",
        value: own.cpu / bare.cpu,
        unit: "×",
        ...(bounds.cpu === undefined ? {} : { atMost: bounds.cpu })
      },
      {
        scenario,
        name: "RSS ÷ bare loop",
        value: own.rss / bare.rss,
        unit: "×",
        ...(bounds.rss === undefined ? {} : { atMost: bounds.rss })
      },
      { scenario, name: "CPU per poll", value: own.cpu, unit: "µs" },
      { scenario, name: "CPU per poll, bare loop", value: bare.cpu, unit: "µs" },
      { scenario, name: "pause of 1000 ms, median", value: median(own.pauses), unit: "ms" },
      { scenario, name: "pause of 1000 ms, p95", value: quantile(own.pauses, 0.95), unit: "ms" },
      { scenario, name: "pause of 1000 ms, p95, bare loop", value: quantile(bare.pauses, 0.95), unit: "ms" },
      { scenario, name: "submissions", value: submitted, unit: "/s" }
    ]
  })

const alone = <E, R>(poller: Effect.Effect<{ readonly ticks: Ticks; readonly pid: number }, E, R>, window: number) =>
  Effect.gen(function*() {
    const started = yield* poller
    yield* Effect.sleep(3 * settling)
    const [load] = yield* observe(window, [started])
    return load === undefined ? yield* Effect.dieMessage("nothing was observed") : load
  })

/** One after the other: both would want more than the machine has. */
export const inTurn = (sentinels: number, window: number) =>
  Effect.gen(function*() {
    const bare = yield* Effect.scoped(alone(startBare(sentinels), window))
    const own = yield* Effect.scoped(alone(startSentinels(sentinels), window))
    const scenario = nameOf(sentinels)
    const figures: ReadonlyArray<Figure> = [
      { scenario, name: "polls per second ÷ bare loop", value: own.rate / bare.rate, unit: "×", atLeast: 0.67 },
      { scenario, name: "polls per second", value: own.rate, unit: "/s" },
      { scenario, name: "polls per second, bare loop", value: bare.rate, unit: "/s" },
      { scenario, name: "RSS ÷ bare loop", value: own.rss / bare.rss, unit: "×" }
    ]
    return figures
  })

/** A sentinel that waits for nothing. */
export const idle = Effect.gen(function*() {
  const window = 15_000
  const { pid } = yield* startHost({})
  // the collector still tidies up after the start
  yield* Effect.sleep(3 * settling)
  const from = yield* usageOf(pid)
  yield* Effect.sleep(window)
  const to = yield* usageOf(pid)
  const figures: ReadonlyArray<Figure> = [
    { scenario: "idle", name: "CPU of one core", value: ((to.cpu - from.cpu) / window) * 100, unit: "%", atMost: 0.5 },
    { scenario: "idle", name: "RSS", value: to.rss, unit: "MB" }
  ]
  return figures
}).pipe(Effect.scoped)
