import { type CallContext, type Progress, ToolKit, type ToolReply } from "@gcszhn/mcp-sentinel-core/ToolKit"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import {
  CallToolRequestSchema,
  type CallToolResult,
  type JSONRPCMessage,
  ListToolsRequestSchema,
  type ListToolsResult
} from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import type { Readable, Writable } from "node:stream"
import { callerOf } from "./Caller.js"
import { OwnEntry } from "./discovery/Discovery.js"
import type { Greeted } from "./Greeting.js"
import { HostEnvironment } from "./HostEnvironment.js"
import { capabilities, instructions, serverInfo } from "./identity.js"

export interface Streams {
  readonly stdin: Readable
  readonly stdout: Writable
  /** the request that was answered before this server was loaded */
  readonly greeted?: Greeted
}

/** Drops the one answer that the host has already. */
export class GreetedTransport extends StdioServerTransport {
  private greeted: Greeted

  constructor({ greeted, stdin, stdout }: Streams) {
    super(stdin, stdout)
    this.greeted = greeted
  }

  override send(message: JSONRPCMessage): Promise<void> {
    if (this.greeted === undefined || !("id" in message) || message.id !== this.greeted) return super.send(message)
    this.greeted = undefined
    return Promise.resolve()
  }
}

/**
 * Serves the toolkit over stdio (MCP 2025-11-25, stdio transport) until stdin ends. `initialize` waits for nothing. A
 * cancelled request interrupts its call; a progress token gets progress.
 */
export const serve = Effect.fnUntraced(function*(streams: Streams) {
  const { stdin, stdout } = streams
  // each reply that waits for a slow host listens for its drain: many blocked attaches are no leak
  stdout.setMaxListeners(0)
  const kit = yield* ToolKit
  const host = yield* HostEnvironment
  const own = yield* OwnEntry
  const run = Runtime.runPromise(yield* Effect.runtime())
  const server = new Server(serverInfo, { capabilities, instructions })

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
    const onProgress = progressToken === undefined ?
      undefined :
      (progress: Progress) =>
        Effect.ignore(
          Effect.tryPromise(() =>
            sendNotification({ method: "notifications/progress", params: { progressToken, ...progress } })
          )
        )
    const reply = Effect.flatMap(own.callTimeout, (timeout) => {
      const caller = callerOf(server.getClientVersion()?.name, _meta, host.env, progressToken !== undefined, timeout)
      const context: CallContext = { ...caller, onProgress }
      return kit.call(params.name, params.arguments ?? {}, context)
    })
    return run(Effect.map(reply, toResult), { signal })
  })

  const ended = Effect.async<void>((resume) => {
    const end = () => resume(Effect.void)
    stdin.once("end", end)
    stdin.once("close", end)
    stdout.once("error", end)
    server.onclose = end
  })

  yield* Effect.acquireRelease(
    Effect.promise(() => server.connect(new GreetedTransport(streams))),
    () => Effect.promise(() => server.close())
  )
  yield* ended
}, Effect.scoped)

/** Under `_meta` for programs: Codex and Claude Code show the model `structuredContent` in place of the text. */
const dataKey = "mcp-sentinel/data"

const toResult = ({ isError, structured, text }: ToolReply): CallToolResult => ({
  content: [{ type: "text", text }],
  isError,
  ...(structured === undefined ? {} : { _meta: { [dataKey]: structured } })
})
