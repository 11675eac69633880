import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { attachLatency } from "./attach.js"
import { type Figure, holds, tableOf } from "./Figure.js"
import { judgements } from "./judgements.js"
import { idle, inTurn, sideBySide } from "./load.js"
import { memory } from "./memory.js"
import { pictureOf } from "./Picture.js"
import { soak } from "./soak.js"
import { startUp } from "./startUp.js"
import { tokens } from "./tokens.js"

const root = fileURLToPath(new URL("../../../../", import.meta.url))

const scenarios: Readonly<Record<string, Effect.Effect<ReadonlyArray<Figure>, unknown>>> = {
  "start-up": startUp,
  idle,
  tokens,
  conditions: judgements,
  attach: attachLatency,
  "load-100": sideBySide(100, 10_000, {}),
  "load-1000": sideBySide(1_000, 15_000, { cpu: 1.5, rss: 1.5 }),
  "load-10000": inTurn(10_000, 8_000),
  memory
}

const all = { ...scenarios, soak }

const chosen = (names: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const unknown = names.find((name) => !Object.hasOwn(all, name))
    if (unknown !== undefined) {
      return yield* Effect.dieMessage(`there is no scenario "${unknown}"; there are ${Object.keys(all).join(", ")}`)
    }
    return Object.entries(names.length === 0 ? scenarios : all)
      .filter(([name]) => names.length === 0 || names.includes(name))
  })

/** A part of the scenarios leaves the picture of all of them as it is. */
const write = (figures: ReadonlyArray<Figure>, complete: boolean) =>
  Effect.sync(() => {
    mkdirSync(join(root, ".bench"), { recursive: true })
    const results = {
      node: process.version,
      cores: availableParallelism(),
      figures: figures.map((figure) => ({ ...figure, holds: holds(figure) }))
    }
    writeFileSync(join(root, ".bench", "results.json"), `${JSON.stringify(results, null, 2)}\n`)
    if (complete) writeFileSync(join(root, "docs", "bench.svg"), pictureOf(figures))
  })

const bench = Effect.gen(function*() {
  const names = process.argv.slice(2)
  const figures: Array<Figure> = []
  for (const [name, scenario] of yield* chosen(names)) {
    yield* Console.error(`${name} …`)
    figures.push(...yield* scenario)
  }
  yield* Console.log(tableOf(figures))
  yield* write(figures, names.length === 0)
  const broken = figures.filter((figure) => !holds(figure))
  if (broken.length > 0) yield* Console.error(`${broken.length} bound(s) broken`)
  process.exitCode = broken.length > 0 ? 1 : 0
})

NodeRuntime.runMain(bench, {
  teardown: (exit, onExit) => onExit(exit._tag === "Success" ? Number(process.exitCode ?? 0) : 1)
})
