import { type CallContext, type Progress, ToolKit, type ToolReply } from "@gcszhn/mcp-sentinel-core/ToolKit"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type ListToolsResult
} from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import type { Readable, Writable } from "node:stream"
import { callerOf } from "./Caller.js"
import { HostEnvironment } from "./HostEnvironment.js"
import { version } from "@gcszhn/mcp-sentinel-core/version"

export interface Streams {
  readonly stdin: Readable
  readonly stdout: Writable
}

const instructions =
  "Start a long job with its own tool, then call mcp_sentinel_poll once on the tool that tells its status, and mcp_sentinel_attach to wait. Never call a status tool in a loop."

/**
 * Serves the toolkit over stdio (MCP 2025-11-25, stdio transport) until stdin ends. `initialize` waits for nothing. A
 * cancelled request interrupts its call; a progress token gets progress.
 */
export const serve = Effect.fnUntraced(function*({ stdin, stdout }: Streams) {
  const kit = yield* ToolKit
  const host = yield* HostEnvironment
  const run = Runtime.runPromise(yield* Effect.runtime())
  const server = new Server({ name: "mcp-sentinel", version }, { capabilities: { tools: {} }, instructions })

  server.setRequestHandler(ListToolsRequestSchema, (): ListToolsResult => ({
    tools: kit.tools.map(({ annotations, description, inputSchema, name, title }) => ({
      name,
      title,
      description,
      inputSchema: { ...inputSchema, type: "object" as const },
      annotations: { ...annotations, title }
    }))
  }))

  server.setRequestHandler(CallToolRequestSchema, ({ params }, { _meta, sendNotification, signal }) => {
    const progressToken = _meta?.progressToken
    const onProgress = progressToken === undefined ? undefined : (progress: Progress) =>
      Effect.ignore(Effect.tryPromise(() =>
        sendNotification({ method: "notifications/progress", params: { progressToken, ...progress } })
      ))
    const caller = callerOf(server.getClientVersion()?.name, _meta, host.env, progressToken !== undefined)
    const context: CallContext = { ...caller, onProgress }
    return run(Effect.map(kit.call(params.name, params.arguments ?? {}, context), toResult), { signal })
  })

  const ended = Effect.async<void>((resume) => {
    const end = () => resume(Effect.void)
    stdin.once("end", end)
    stdin.once("close", end)
    stdout.once("error", end)
    server.onclose = end
  })

  yield* Effect.acquireRelease(
    Effect.promise(() => server.connect(new StdioServerTransport(stdin, stdout))),
    () => Effect.promise(() => server.close())
  )
  yield* ended
}, Effect.scoped)

const toResult = ({ isError, structured, text }: ToolReply): CallToolResult => ({
  content: [{ type: "text", text }],
  isError,
  ...(structured === undefined ? {} : { structuredContent: { ...structured } })
})
