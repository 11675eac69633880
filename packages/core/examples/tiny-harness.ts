/**
 * A whole harness for an imaginary host, in the form a plugin author would write it without Effect. The host calls MCP
 * tools itself, registers tools by a JSON Schema, and takes messages for a session.
 */
import type { Json, JsonObject } from "@gcszhn/mcp-sentinel-core/Json"
import { InvokeError, makeSentinel, NotifyError } from "@gcszhn/mcp-sentinel-core/promise"

/** What this host offers to a plugin. */
export interface TinyHost {
  readonly servers: ReadonlyArray<string>
  callTool(server: string, tool: string, args: JsonObject, signal: AbortSignal): Promise<Json>
  registerTool(tool: TinyTool): void
  /** false when the session is gone */
  say(session: string, text: string): Promise<boolean>
  onShutdown(cleanUp: () => Promise<void>): void
}

export interface TinyTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly run: (input: unknown, turn: TinyTurn) => Promise<TinyResult>
}

export interface TinyTurn {
  readonly session: string
  readonly signal: AbortSignal
  readonly showProgress: (message: string) => void
}

export interface TinyResult {
  readonly text: string
  readonly failed: boolean
}

/** The plugin's entry. */
export const activate = (host: TinyHost): void => {
  const sentinel = makeSentinel({
    check: async ({ server }) =>
      host.servers.includes(server) ? undefined : `no server ${server}; there are ${host.servers.join(", ")}`,
    invoke: (server, tool, args, { signal }) =>
      host.callTool(server, tool, args, signal).catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error)
        throw new InvokeError(message.startsWith("unknown tool") ? "fatal" : "transport", message)
      }),
    notify: async ({ origin, text }) => {
      if (!await host.say(origin.session ?? "", text)) throw new NotifyError("gone", "the session was closed")
    },
    advice: "You will be told in this session when it ends."
  })

  for (const { description, inputSchema, name } of sentinel.tools) {
    host.registerTool({
      name,
      description,
      inputSchema,
      run: async (input, { session, showProgress, signal }) => {
        const { isError, text } = await sentinel.call(name, input, {
          origin: { session },
          signal,
          onProgress: ({ message }) => showProgress(message)
        })
        return { text, failed: isError }
      }
    })
  }
  host.onShutdown(sentinel.dispose)
}
