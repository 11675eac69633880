import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { type StdioJobs, stdioJobs } from "../JobServer.js"
import { type JsonValue, type Ledger, makeLedger } from "../Ledger.js"
import type { Figure } from "./Figure.js"
import { callTool, cli, connect, temporaryFolder } from "./Host.js"

/** A job of 30 minutes, looked at every 30 s. */
const looks = 60

/** Looks of the sentinel's own run: its messages are the same for each length of a job. */
const sentinelLooks = 3

const script = (count: number) => ({
  tools: {
    get_status: {
      steps: [
        ...Array.from({ length: count - 1 }, (_, n) => ({
          json: { status: "running", progress: Math.round((100 * n) / count), log: `step ${n + 1} of ${count}` }
        })),
        { json: { status: "done", progress: 100, artifact: "report.pdf" } }
      ]
    }
  }
})

const prompt = "The job is running on the server \"jobs\". Tell me its artifact when get_status says that it is done."
const farewell = { role: "assistant", content: "It is report.pdf." }

const turn = (client: Client, ledger: Ledger, name: string, args: { readonly [key: string]: JsonValue }) => {
  ledger.inference({ role: "assistant", tool_call: { name, arguments: args } })
  return Effect.tap(callTool(client, name, args), (content) => ledger.add({ role: "tool", content }))
}

const toolsOf = (client: Client) =>
  Effect.promise(async (): Promise<ReadonlyArray<JsonValue>> =>
    JSON.parse(JSON.stringify((await client.listTools()).tools))
  )

const ledgerFor = (tools: ReadonlyArray<JsonValue>): Ledger => {
  const ledger = makeLedger(tools)
  ledger.add({ role: "user", content: prompt })
  return ledger
}

const byHand = Effect.fn("byHand")(function*(jobs: StdioJobs) {
  const { client } = yield* connect(jobs.command, jobs.args)
  const ledger = ledgerFor(yield* toolsOf(client))
  for (let look = 0; look < looks; look++) yield* turn(client, ledger, "get_status", {})
  ledger.inference(farewell)
  return ledger.total()
})

const withSentinel = Effect.fn("withSentinel")(function*(jobs: StdioJobs) {
  const config = join(yield* temporaryFolder, "mcp.json")
  writeFileSync(config, JSON.stringify({ mcpServers: { jobs: { command: jobs.command, args: jobs.args } } }))
  const { client } = yield* connect(process.execPath, [cli, "mcp", "--mcp-config", config])
  const direct = yield* connect(jobs.command, jobs.args)
  const ledger = ledgerFor([...(yield* toolsOf(direct.client)), ...(yield* toolsOf(client))])
  const started = yield* turn(client, ledger, "mcp_sentinel_poll", {
    server: "jobs",
    tool: "get_status",
    interval: 1_000,
    until: { path: "status", is: "eq", value: "done" }
  })
  const outcome = yield* turn(client, ledger, "mcp_sentinel_attach", {
    id: /sentinel_[0-9a-f]+/.exec(started)?.[0] ?? ""
  })
  ledger.inference(farewell)
  return outcome.includes("report.pdf") ? ledger.total() : yield* Effect.dieMessage(outcome)
})

/** What a model is paid for while it waits for a job of 30 minutes: real messages, with the time between them left out. */
export const tokens = Effect.gen(function*() {
  const hand = yield* Effect.flatMap(stdioJobs(script(looks)), byHand)
  const own = yield* Effect.flatMap(stdioJobs(script(sentinelLooks)), withSentinel)
  const scenario = "tokens of a wait"
  const figures: ReadonlyArray<Figure> = [
    { scenario, name: "inference calls, by hand", value: hand.inferences, unit: "" },
    { scenario, name: "inference calls, sentinel", value: own.inferences, unit: "", atMost: 3 },
    { scenario, name: "input tokens, by hand", value: hand.tokens, unit: "" },
    { scenario, name: "input tokens, sentinel", value: own.tokens, unit: "" },
    { scenario, name: "input tokens ÷ by hand", value: own.tokens / hand.tokens, unit: "×", atMost: 0.2 }
  ]
  return figures
}).pipe(Effect.scoped)
