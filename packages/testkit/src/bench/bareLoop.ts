/**
 * The practical limit of polling: the MCP SDK's client, a timer for each loop, and nothing else.
 * `node bareLoop.js <loops> <interval in ms> <server> [<argument>…]`
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"

const [loops, interval, command = "", ...args] = process.argv.slice(2)

const client = new Client({ name: "bare-loop", version: "1.0.0" })
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }))

const isDone = (content: unknown): boolean => {
  const block: unknown = Array.isArray(content) ? content[0] : undefined
  const text = typeof block === "object" && block !== null && "text" in block ? block.text : undefined
  const value: unknown = JSON.parse(String(text))
  return typeof value === "object" && value !== null && "status" in value && value.status === "done"
}

let ending = false

const poll = async (id: number): Promise<void> => {
  const { content } = await client.callTool({ name: "tick", arguments: { id } })
  if (!ending && !isDone(content)) setTimeout(() => void poll(id), Number(interval))
}

for (let id = 0; id < Number(loops); id++) void poll(id)
process.stdin.on("end", () => {
  ending = true
  process.exit(0)
}).resume()
