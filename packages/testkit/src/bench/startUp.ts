import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import type { Figure } from "./Figure.js"
import { cli } from "./Host.js"
import { median } from "./Machine.js"

const rounds = 15

const message = (body: Readonly<Record<string, unknown>>) => `${JSON.stringify({ jsonrpc: "2.0", ...body })}\n`

const initialize = message({
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1.0.0" } }
})

const askForTools = message({ method: "notifications/initialized" }) + message({ id: 2, method: "tools/list" })

/** ms from spawn to the end of an empty program. */
const emptyNode = Effect.async<number>((resume) => {
  const from = performance.now()
  spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }).once(
    "exit",
    () => resume(Effect.succeed(performance.now() - from))
  )
})

/** ms from spawn to the replies to `initialize` and to `tools/list`. */
const sentinel = Effect.async<{ readonly initialized: number; readonly listed: number }>((resume) => {
  const from = performance.now()
  const child = spawn(process.execPath, [cli, "mcp"], { stdio: ["pipe", "pipe", "ignore"] })
  let text = ""
  let initialized = 0
  let listed = 0
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
    if (initialized === 0 && text.includes("\n")) {
      initialized = performance.now() - from
      child.stdin.write(askForTools)
    }
    if (listed === 0 && text.trimEnd().split("\n").length > 1 && text.endsWith("\n")) {
      listed = performance.now() - from
      child.stdin.end()
    }
  })
  child.once("exit", () => resume(Effect.succeed({ initialized, listed })))
  child.stdin.write(initialize)
})

/** Start-up against an empty Node, turn by turn; the best of each, which a busy machine spoils least. */
export const startUp = Effect.gen(function*() {
  const empty: Array<number> = []
  const own: Array<{ readonly initialized: number; readonly listed: number }> = []
  for (let round = 0; round < rounds; round++) {
    empty.push(yield* emptyNode)
    own.push(yield* sentinel)
  }
  const base = Math.min(...empty)
  const initialized = own.map((one) => one.initialized)
  const listed = own.map((one) => one.listed)
  const scenario = "start-up"
  const figures: ReadonlyArray<Figure> = [
    {
      scenario,
      name: "initialize reply ÷ node -e 0",
      value: Math.min(...initialized) / base,
      unit: "×",
      atMost: 2,
      note: `best of ${rounds}; the ratio of the medians is ${(median(initialized) / median(empty)).toFixed(2)}`
    },
    { scenario, name: "tools/list reply ÷ node -e 0", value: Math.min(...listed) / base, unit: "×" },
    { scenario, name: "initialize reply", value: Math.min(...initialized), unit: "ms" },
    { scenario, name: "node -e 0", value: base, unit: "ms" }
  ]
  return figures
})
