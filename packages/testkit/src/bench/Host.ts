import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** A server as an MCP configuration names it. */
export type Entry =
  | { readonly command: string; readonly args: ReadonlyArray<string> }
  | { readonly type: "http"; readonly url: string }

export type Arguments = { readonly [name: string]: unknown }

/** The built CLI as a host sees it. */
export interface Host {
  readonly pid: number
  /** Calls one of its tools and gives the text of the reply; its interruption cancels the request. */
  readonly call: (tool: string, args: Arguments) => Effect.Effect<string>
  /** Submits a sentinel, and gives its ID. */
  readonly poll: (args: Arguments) => Effect.Effect<string>
}

export const cli = fileURLToPath(new URL("../../../cli/dist/bin.mjs", import.meta.url))

export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-sentinel-bench-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const patience = 300_000

export const connect = (command: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const transport = new StdioClientTransport({
        command,
        args: [...args],
        env: { PATH: process.env["PATH"] ?? "", ...env },
        stderr: "ignore"
      })
      const client = new Client({ name: "bench", version: "1.0.0" })
      await client.connect(transport)
      return { client, pid: transport.pid ?? 0 }
    }),
    ({ client }) => Effect.promise(() => client.close())
  )

const textOf = (result: unknown): string =>
  CallToolResultSchema.parse(result).content.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n")

export const callTool = (client: Client, name: string, args: Arguments) =>
  Effect.promise(async (signal) =>
    textOf(await client.callTool({ name, arguments: args }, CallToolResultSchema, { timeout: patience, signal }))
  )

/** Starts the built CLI over the given servers; it ends with the scope. */
export const startHost = Effect.fn("startHost")(function*(
  servers: Readonly<Record<string, Entry>>,
  env: Readonly<Record<string, string>> = {}
) {
  const config = join(yield* temporaryFolder, "mcp.json")
  writeFileSync(config, JSON.stringify({ mcpServers: servers }))
  const { client, pid } = yield* connect(process.execPath, [cli, "mcp", "--mcp-config", config], env)
  const call: Host["call"] = (tool, args) => callTool(client, tool, args)
  const host: Host = {
    pid,
    call,
    poll: (args) =>
      Effect.flatMap(call("mcp_sentinel_poll", args), (text) => {
        const id = /sentinel_[0-9a-f]+/.exec(text)?.[0]
        return id === undefined ? Effect.dieMessage(text) : Effect.succeed(id)
      })
  }
  return host
})
