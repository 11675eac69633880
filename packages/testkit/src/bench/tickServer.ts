/**
 * The MCP server that load is measured against, without dependencies: `node tickServer.js <metrics file>`. Each call of
 * `tick` is answered at once: done at call `calls` of an `id`, with `bytes` of changing text. It notes, for each `id`, how long after its last answer the next call came, which is the
 * pause that a poller really made.
 */
import { renameSync, writeFileSync } from "node:fs"

/** What the server knows of its callers, written every 100 ms. */
export interface Metrics {
  /** calls so far */
  readonly calls: number
  /** ms that the pauses of the last calls lasted */
  readonly pauses: ReadonlyArray<number>
}

interface Arguments {
  readonly id?: unknown
  readonly bytes?: unknown
  readonly calls?: unknown
}

interface Request {
  readonly id?: number | string
  readonly method?: string
  readonly params?: {
    readonly protocolVersion?: string
    readonly arguments?: Arguments
  }
}

const kept = 4_000

const metrics: { calls: number; readonly pauses: Array<number> } = { calls: 0, pauses: [] }
const answered = new Map<unknown, number>()
const counts = new Map<unknown, number>()

let noted = 0

const note = (id: unknown): void => {
  const before = answered.get(id)
  metrics.calls += 1
  if (before === undefined) return
  metrics.pauses[noted % kept] = performance.now() - before
  noted += 1
}

/** A text that is another one at every call. */
const bulk = (bytes: number): string => `${metrics.calls} `.repeat(Math.ceil(bytes / 2)).slice(0, bytes)

const isLast = ({ calls, id }: Arguments): boolean => {
  if (typeof calls !== "number") return false
  const count = (counts.get(id) ?? 0) + 1
  counts.set(id, count)
  return count === calls
}

const tick = (args: Arguments) => {
  note(args.id)
  const value = {
    status: isLast(args) ? "done" : "running",
    progress: metrics.calls,
    at: performance.timeOrigin + performance.now(),
    ...(typeof args.bytes === "number" ? { log: bulk(args.bytes) } : {})
  }
  return { content: [{ type: "text", text: JSON.stringify(value) }] }
}

const resultOf = ({ method, params }: Request): unknown => {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "tick-server", version: "1.0.0" }
      }
    case "tools/list":
      return { tools: [{ name: "tick", inputSchema: { type: "object" } }] }
    case "tools/call":
      return tick(params?.arguments ?? {})
    default:
      return {}
  }
}

const answer = (line: string): string => {
  const request: Request = JSON.parse(line)
  return request.id === undefined
    ? ""
    : `${JSON.stringify({ jsonrpc: "2.0", id: request.id, result: resultOf(request) })}\n`
}

const idsOf = (lines: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  lines.flatMap((line) => {
    const request: Request = JSON.parse(line)
    return request.method === "tools/call" ? [request.params?.arguments?.id] : []
  })

let rest = ""
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = `${rest}${String(chunk)}`.split("\n")
  rest = lines.pop() ?? ""
  const answers = lines.map(answer).join("")
  if (answers !== "") process.stdout.write(answers)
  const now = performance.now()
  for (const id of idsOf(lines)) answered.set(id, now)
})
process.stdin.on("end", () => process.exit(0))

const file = process.argv[2]
if (file !== undefined) {
  setInterval(() => {
    writeFileSync(`${file}.new`, JSON.stringify(metrics))
    renameSync(`${file}.new`, file)
  }, 100).unref()
}
