import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { temporaryFolder } from "./Host.js"
import type { Metrics } from "./tickServer.js"

const program = (name: string) => fileURLToPath(new URL(`./${name}.js`, import.meta.url))

/** A tick server that somebody will start, and what it counts. */
export interface Ticks {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly metrics: Effect.Effect<Metrics>
}

const none: Metrics = { calls: 0, pauses: [] }

export const makeTicks = Effect.map(temporaryFolder, (folder): Ticks => {
  const file = join(folder, "metrics.json")
  return {
    command: process.execPath,
    args: [program("tickServer"), file],
    metrics: Effect.sync((): Metrics => existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : none)
  }
})

/** Starts the yardstick: as many loops over the SDK's client and a timer. It ends with the scope. */
export const startBareLoop = (loops: number, interval: number, ticks: Ticks) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [program("bareLoop"), String(loops), String(interval), ticks.command, ...ticks.args], {
        stdio: ["pipe", "ignore", "ignore"]
      })
    ),
    (child) =>
      Effect.async<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.stdin.end()
      }).pipe(Effect.timeoutOption("5 seconds"), Effect.tap(() => Effect.sync(() => child.kill("SIGKILL"))))
  ).pipe(Effect.map((child) => child.pid ?? 0))
