import type { ToolExecutionResult } from "@deepseek-ai/dsh-tools"
import { FatalFailure, type InvokeFailure, ToolFailure, TransportFailure } from "@gcszhn/mcp-sentinel-core/Errors"
import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import { fromCallToolResult, type ToolValue } from "@gcszhn/mcp-sentinel-core/ToolResult"
import * as Either from "effect/Either"

/** A call as dsh settled it. `reached`: it got past dsh's own policies to the tool. */
export interface Settled {
  readonly target: ToolTarget
  readonly result: ToolExecutionResult
  readonly reached: boolean
}

const cutOff = /^(MCP error -32000\b|Not connected\b)/
const unreachable = /^(MCP error -32001\b|Streamable HTTP error\b|fetch failed\b|SSE error\b)/i
const unauthorised = /\b(401|403|unauthori[sz]ed|forbidden)\b/i
const neverRight = /^(MCP error -32602\b|Tool ".*" requires task-based execution)/

const missing = "dsh does not have this tool at the moment"

/** dsh's connection to the server is down; dsh-mcp-client is about to start a stdio server again. */
export const isCutOff = (failure: InvokeFailure): boolean =>
  failure._tag === "TransportFailure" && cutOff.test(failure.message)

/** dsh has no such tool, which may be for a moment only. */
export const isMissing = (failure: InvokeFailure): boolean =>
  failure._tag === "TransportFailure" && failure.message.startsWith(missing)

/**
 * What a settled call means (SPEC "Failed calls"). dsh keeps only the message of most failures, so that the kinds are
 * told apart by the words of the MCP SDK, by dsh's own codes, and by whether the call reached the tool.
 */
export const interpret = ({ reached, result, target }: Settled): Either.Either<ToolValue, InvokeFailure> => {
  if (!result.isError) return Either.right(fromCallToolResult(result.value))
  const { info, message } = result.error
  const named = { server: target.server, tool: target.tool }
  const fatal = (text: string) => Either.left(new FatalFailure({ ...named, message: text }))
  const transport = (text: string) => Either.left(new TransportFailure({ ...named, message: text }))
  if (info?.code === "UNKNOWN_TOOL") {
    return transport(`${missing}; its MCP server may be starting again, or dsh has given it up (${message})`)
  }
  if (info?.code === "ABORTED" || info?.code === "ABORTED_BEFORE_DISPATCH") return transport(message)
  if (!reached) return fatal(`dsh refused the call: ${message}`)
  if (neverRight.test(message)) return fatal(message)
  if (cutOff.test(message)) return transport(message)
  if (unreachable.test(message)) return unauthorised.test(message) ? fatal(message) : transport(message)
  const value = fromCallToolResult({ content: [{ type: "text", text: message }], isError: true })
  return Either.left(new ToolFailure({ ...named, message, value }))
}
