import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js"
import Table from "cli-table3"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { clearLine, cursorTo } from "node:readline"
import { fileURLToPath } from "node:url"
import { type StdioJobs, stdioJobs } from "../JobServer.js"
import { type JsonValue, type Ledger, makeLedger } from "../Ledger.js"

const looks = 25
const interval = 1_000

const job = {
  tools: {
    get_status: {
      steps: [
        ...Array.from({ length: looks - 1 }, (_, n) => ({
          json: { status: "running", progress: Math.round((100 * n) / looks), log: `step ${n + 1} of ${looks}` }
        })),
        { json: { status: "done", progress: 100, artifact: "report.pdf" } }
      ]
    }
  }
}

const prompt = "The job is running on the server \"jobs\". Tell me its artifact when get_status says that it is done."

const cli = fileURLToPath(new URL("../../../cli/dist/bin.mjs", import.meta.url))

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-sentinel-demo-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const connect = (command: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "demo-agent", version: "1.0.0" })
      await client.connect(new StdioClientTransport({ command, args: [...args], stderr: "inherit" }))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

/** One turn of the agent: an inference that decides to call a tool, the call, and its result in the history. */
const turn = (
  client: Client,
  ledger: Ledger,
  name: string,
  args: { readonly [key: string]: JsonValue },
  onProgress: (message: string) => void = () => {}
) =>
  Effect.promise(async () => {
    ledger.inference({ role: "assistant", tool_call: { name, arguments: args } })
    const result = await client.callTool({ name, arguments: args }, CallToolResultSchema, {
      timeout: 120_000,
      resetTimeoutOnProgress: true,
      onprogress: ({ message = "" }) => onProgress(message)
    })
    const { content } = CallToolResultSchema.parse(result)
    const text = content.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n")
    ledger.add({ role: "tool", content: text })
    return text
  })

const toolsOf = (client: Client) =>
  Effect.promise(async (): Promise<ReadonlyArray<JsonValue>> => {
    const { tools } = await client.listTools()
    return JSON.parse(JSON.stringify(tools))
  })

const ledgerFor = (tools: ReadonlyArray<JsonValue>): Ledger => {
  const ledger = makeLedger(tools)
  ledger.add({ role: "user", content: prompt })
  return ledger
}

/** The agent looks by itself: an inference for every look. */
const byHand = (jobs: StdioJobs) =>
  Effect.gen(function*() {
    const client = yield* connect(jobs.command, jobs.args)
    const ledger = ledgerFor(yield* toolsOf(client))
    for (let look = 1; look <= looks; look++) {
      const text = yield* turn(client, ledger, "get_status", {})
      if (text.includes("\"done\"")) break
      yield* Effect.sleep(interval)
    }
    ledger.inference({ role: "assistant", content: "It is report.pdf." })
    return ledger.total()
  })

const isTerminal = process.stdout.isTTY === true

const progressLine = (message: string): void => {
  if (!isTerminal) return void process.stdout.write(`  ${message}\n`)
  clearLine(process.stdout, 0)
  cursorTo(process.stdout, 0)
  process.stdout.write(`  ${message}`.slice(0, (process.stdout.columns || 80) - 1))
}

const endProgress = Effect.sync(() => {
  if (isTerminal) process.stdout.write("\n")
})

/** The agent asks the sentinel once and attaches. */
const withSentinel = (jobs: StdioJobs, folder: string) =>
  Effect.gen(function*() {
    const config = join(folder, "mcp.json")
    writeFileSync(config, JSON.stringify({ mcpServers: { jobs: { command: jobs.command, args: jobs.args } } }))
    const client = yield* connect(process.execPath, [cli, "mcp", "--mcp-config", config, "--log-level", "warning"])
    const direct = yield* connect(jobs.command, jobs.args)
    const ledger = ledgerFor([...(yield* toolsOf(direct)), ...(yield* toolsOf(client))])
    const started = yield* turn(client, ledger, "mcp_sentinel_poll", {
      server: "jobs",
      tool: "get_status",
      interval,
      until: { path: "status", is: "eq", value: "done" }
    })
    const id = /sentinel_[0-9a-f]+/.exec(started)?.[0]
    const outcome = yield* turn(client, ledger, "mcp_sentinel_attach", { id: id ?? "" }, progressLine)
    yield* endProgress
    ledger.inference({ role: "assistant", content: "It is report.pdf." })
    return { ...ledger.total(), outcome }
  })

const demo = Effect.gen(function*() {
  const started = performance.now()
  const folder = yield* temporaryFolder
  yield* Console.log(`A job that is done at look ${looks}, one look a second. The agent waits through mcp-sentinel:`)
  const [hand, sentinel] = yield* Effect.all([
    Effect.flatMap(stdioJobs(job), byHand),
    Effect.flatMap(stdioJobs(job), (jobs) => withSentinel(jobs, folder))
  ], { concurrency: 2 })
  yield* Console.log(`\n${sentinel.outcome}\n`)
  const table = new Table({ head: ["", "inference calls", "input tokens"], style: { head: [], border: [] } })
  table.push(
    ["agent looks by itself", hand.inferences, hand.tokens],
    ["with mcp-sentinel", sentinel.inferences, sentinel.tokens]
  )
  yield* Console.log(table.toString())
  yield* Console.log(
    "Both agents ran at the same time against servers of their own. Tokens: a quarter of the characters that each\n" +
      `request would have sent, tools and history included. Took ${
        Math.round((performance.now() - started) / 100) / 10
      } s.`
  )
  if (!sentinel.outcome.includes("report.pdf")) return yield* Effect.dieMessage("the outcome is not the job's")
})

NodeRuntime.runMain(Effect.scoped(demo))
