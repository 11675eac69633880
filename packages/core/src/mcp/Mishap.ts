import type { JSONRPCErrorResponse } from "@modelcontextprotocol/sdk/types.js"
import * as Data from "effect/Data"
import { isJsonObject } from "../Json.js"

/** What went wrong with a connection or a call, before it is judged (`Failures.ts` does). */
export type Mishap = Data.TaggedEnum<{
  /** the command of a stdio server could not be started */
  SpawnFailed: { readonly command: string; readonly code: string; readonly cwd?: string | undefined }
  /** the server's process or connection ended; `how` is a clause */
  Ended: { readonly how: string }
  /** no answer within `millis` */
  Silent: { readonly millis: number }
  /** an answer over the frame limit */
  TooBig: { readonly bytes: number; readonly limit: number }
  /** an HTTP stream ended without the answer */
  NoReply: {}
  /** a JSON-RPC error of the server */
  Rpc: { readonly code: number; readonly message: string }
  /** an HTTP answer that is no MCP: a status of 300 and above, or another content type */
  Http: HttpAnswer
  /** the server speaks no protocol version that the client knows */
  Version: { readonly version: string }
  /** the server is a sentinel itself */
  Self: {}
  /** no connection to the URL */
  Network: { readonly message: string }
}>
export const Mishap = Data.taggedEnum<Mishap>()

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: string
  /** the header as it came: seconds, or an HTTP date */
  readonly retryAfter?: string | undefined
  readonly wwwAuthenticate?: string | undefined
}

/** Thrown by the transport's fetch in place of a failing answer, so that its headers reach the call that it failed. */
export class HttpFailure extends Error {
  readonly answer: HttpAnswer
  constructor(answer: HttpAnswer) {
    super(`HTTP ${answer.status}`)
    this.answer = answer
  }
}

/** Travels as `data` of an error that the transport puts in place of an answer. */
class Verdict {
  readonly mishap: Mishap
  constructor(mishap: Mishap) {
    this.mishap = mishap
  }
}

const inPlaceOfReply = (id: number | string, mishap: Mishap): JSONRPCErrorResponse => ({
  jsonrpc: "2.0",
  id,
  error: { code: -32_000, message: mishap._tag, data: new Verdict(mishap) }
})

export const frameTooBig = (id: number | string, bytes: number, limit: number) =>
  inPlaceOfReply(id, Mishap.TooBig({ bytes, limit }))

export const noReply = (id: number | string) => inPlaceOfReply(id, Mishap.NoReply())

const connectionClosed = -32_000
const requestTimeout = -32_001

const textOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** fetch hides the reason ("fetch failed") in the causes. */
const rootCause = (error: unknown): unknown =>
  error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error

const causeText = (error: unknown): string => {
  const cause = rootCause(error)
  if (cause instanceof AggregateError) return cause.errors.map(textOf).join("; ")
  return textOf(cause)
}

const rpcMishap = (code: number, error: Error, data: unknown): Mishap => {
  if (data instanceof Verdict) return data.mishap
  if (code === requestTimeout && isJsonObject(data) && typeof data["timeout"] === "number") {
    return Mishap.Silent({ millis: data["timeout"] })
  }
  const message = error.message.replace(`MCP error ${code}: `, "")
  return code === connectionClosed && message === "Connection closed"
    ? Mishap.Ended({ how: "the connection was closed" })
    : Mishap.Rpc({ code, message })
}

/** Reads an error of the MCP SDK, of its transports, or of fetch. */
export const mishapOf = (error: unknown): Mishap => {
  if (error instanceof HttpFailure) return Mishap.Http(error.answer)
  if (!(error instanceof Error)) return Mishap.Network({ message: textOf(error) })
  const version = /^Server's protocol version is not supported: (.*)$/s.exec(error.message)?.[1]
  if (version !== undefined) return Mishap.Version({ version })
  const code = "code" in error ? error.code : undefined
  if (error.name === "McpError" && typeof code === "number") {
    return rpcMishap(code, error, "data" in error ? error.data : undefined)
  }
  if (typeof code === "number" && code >= 300) {
    return Mishap.Http({ status: code, contentType: undefined, body: error.message })
  }
  return Mishap.Network({ message: causeText(error) })
}
