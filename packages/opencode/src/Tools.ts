import type { JsonObject } from "@gcszhn/mcp-sentinel-core/Json"
import type { ToolDefinition, ToolReply } from "@gcszhn/mcp-sentinel-core/ToolKit"
import { ToolKit } from "@gcszhn/mcp-sentinel-core/ToolKit"
import type { ToolDefinition as HostTool, ToolResult } from "@opencode-ai/plugin/tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { nonoptional, optional, unknown } from "zod"
import type { CallingContext } from "./Caller.js"
import { originOf } from "./Caller.js"
import { Host } from "./Host.js"

const isProperties = Schema.is(Schema.Record({
  key: Schema.String,
  value: Schema.Record({ key: Schema.String, value: Schema.Unknown })
}))
const isNames = Schema.is(Schema.Array(Schema.String))

/**
 * opencode turns zod into the JSON Schema that the model sees, breaks every `$ref` on the way, and never validates with
 * it. So each parameter is "anything", which carries core's own JSON Schema as its metadata; core reads the input.
 */
const argsOf = (schema: JsonObject): HostTool["args"] => {
  const properties = isProperties(schema["properties"]) ? schema["properties"] : {}
  const required = isNames(schema["required"]) ? schema["required"] : []
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const anything = required.includes(name) ? nonoptional(unknown()) : optional(unknown())
      return [name, anything.meta({ ...property })]
    })
  )
}

/** Runs a call; never rejects. */
export type Run = (
  effect: Effect.Effect<ToolReply, never, ToolKit | Host>,
  signal: AbortSignal
) => Promise<Exit.Exit<ToolReply>>

const resultOf = (exit: Exit.Exit<ToolReply>): ToolResult =>
  Exit.match(exit, {
    onSuccess: ({ isError, structured, text }) => ({ output: text, metadata: { isError, ...structured } }),
    onFailure: (cause) => ({
      output: Cause.isInterruptedOnly(cause)
        ? "The call was interrupted. A sentinel that was already started goes on; mcp_sentinel_status lists it."
        : `Error: mcp-sentinel itself failed: ${Cause.pretty(cause).split("\n", 1)[0]}`,
      metadata: { isError: true }
    })
  })

const callTool = Effect.fnUntraced(function*(name: string, input: unknown, context: CallingContext) {
  const kit = yield* ToolKit
  const host = yield* Host
  return yield* kit.call(name, input, {
    origin: originOf(context),
    onProgress: ({ message }) => Effect.uninterruptible(host.showProgress(context, message))
  })
})

/** The shared tools as opencode's. */
export const toHostTools = (definitions: ReadonlyArray<ToolDefinition>, run: Run): Record<string, HostTool> =>
  Object.fromEntries(definitions.map(({ description, inputSchema, name }) => [name, {
    description,
    args: argsOf(inputSchema),
    execute: async (input, context) => resultOf(await run(callTool(name, input, context), context.abort))
  }]))
