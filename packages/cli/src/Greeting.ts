import { once } from "node:events"
import type { Readable, Writable } from "node:stream"
import { capabilities, instructions, serverInfo } from "./identity.js"

/** The protocol versions that the MCP SDK speaks, which a greeting must know before the SDK is loaded. */
export const protocolVersions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"]

/** The id of an `initialize` that was answered already. */
export type Greeted = string | number | undefined

interface Fields {
  readonly [key: string]: unknown
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parsed = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** An `initialize` of which nothing has to be negotiated or refused. */
const plainInitialize = (
  line: string
): { readonly id: string | number; readonly protocolVersion: string } | undefined => {
  const message = parsed(line)
  if (!isFields(message) || message["jsonrpc"] !== "2.0" || message["method"] !== "initialize") return undefined
  const { id, params } = message
  if ((typeof id !== "string" && !Number.isInteger(id)) || !isFields(params) || !isFields(params["capabilities"])) {
    return undefined
  }
  const { clientInfo, protocolVersion } = params
  const named = isFields(clientInfo) && typeof clientInfo["name"] === "string" &&
    typeof clientInfo["version"] === "string"
  const known = typeof protocolVersion === "string" && protocolVersions.includes(protocolVersion)
  return named && known && (typeof id === "string" || typeof id === "number") ? { id, protocolVersion } : undefined
}

const newline = 10

/** The first bytes of a stream up to a line's end or its own, put back for whoever reads on. */
const peekLine = async (stdin: Readable): Promise<string | undefined> => {
  const chunks: Array<Buffer> = []
  const ended = new AbortController()
  stdin.once("end", () => ended.abort())
  try {
    while (chunks.at(-1)?.includes(newline) !== true) {
      await once(stdin, "readable", { signal: ended.signal })
      for (let chunk: unknown = stdin.read(); chunk !== null; chunk = stdin.read()) {
        chunks.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)))
      }
    }
  } catch {
    return undefined
  }
  const bytes = Buffer.concat(chunks)
  stdin.unshift(bytes)
  return bytes.toString("utf8", 0, bytes.indexOf(newline))
}

/**
 * Answers a host's `initialize` while the server behind it is not loaded yet, so that the host goes on at once. Nothing
 * is taken from `stdin`: the server reads the same request again, and its answer is the one to drop. Whatever is not a
 * plain `initialize` is left to the server. False: stdin ended before a request came.
 */
export const greet = async (stdin: Readable, stdout: Writable): Promise<{ readonly greeted: Greeted } | false> => {
  const line = await peekLine(stdin)
  if (line === undefined) return false
  const request = plainInitialize(line)
  if (request === undefined) return { greeted: undefined }
  const { id, protocolVersion } = request
  const result = { protocolVersion, capabilities, serverInfo, instructions }
  stdout.write(`${JSON.stringify({ result, jsonrpc: "2.0", id })}\n`)
  return { greeted: id }
}
