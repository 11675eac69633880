// A stdio MCP server for the DeepSeek Harness tests. Its folder (argv[2]) is its only state, so that a test moves a job on by
// writing a file, and a restart shows.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { z } from "zod"

const folder = process.argv[2]
const log = (event) => appendFileSync(join(folder, "log"), `${JSON.stringify({ pid: process.pid, ...event })}\n`)
const text = (value, isError = false) => ({ content: [{ type: "text", text: value }], isError })

log({ event: "start" })
if (existsSync(join(folder, "broken"))) process.exit(7)

const server = new McpServer({ name: "jobs", version: "1.0.0" })

const state = (id) => {
  const file = join(folder, `${id}.json`)
  return existsSync(file) ? readFileSync(file, "utf8") : undefined
}

const status = ({ id }) => {
  log({ event: "status", id })
  if (existsSync(join(folder, `${id}.die`))) {
    rmSync(join(folder, `${id}.die`))
    process.exit(3)
  }
  const found = state(id)
  return found === undefined ? text(`no job ${id} yet`, true) : text(found)
}

server.registerTool("get_status", { description: "State of a job", inputSchema: { id: z.string() } }, status)
server.registerTool("job.status/v2", { description: "The same, oddly named", inputSchema: { id: z.string() } }, status)
server.registerTool("hang", { description: "Answers after an hour", inputSchema: {} }, (_, extra) => {
  log({ event: "hang" })
  extra.signal.addEventListener("abort", () => log({ event: "hang-cancelled" }))
  return new Promise((resolve) => setTimeout(() => resolve(text("late")), 3_600_000).unref())
})
await server.connect(new StdioServerTransport())
