import * as Either from "effect/Either"
import { writeJson } from "./Excerpt.js"
import { isJsonObject, type Json } from "./Json.js"

/** What a condition sees of a call, and what is kept of it (SPEC "The value of a call"). */
export interface ToolValue {
  readonly json: Json
  /** set when the whole text was one bare JSON scalar (`42`, `true`): its second reading, as text */
  readonly text?: string | undefined
  /** the value as text, for logs and reports: JSON where `json` is not a string, else the string itself */
  readonly raw: string
}

export const isToolValue = (value: unknown): value is ToolValue =>
  isJsonObject(value) && value["json"] !== undefined && typeof value["raw"] === "string"

/** A JSON value that did not come as text. */
export const fromJson = (json: Json): ToolValue => ({ json, raw: typeof json === "string" ? json : stringify(json) })

const stringify = (json: Json): string =>
  Either.getOrElse(Either.try(() => JSON.stringify(json)), () => writeJson(json))

const parse = (text: string): Either.Either<Json, unknown> => Either.try((): Json => JSON.parse(text))

/** A text: the JSON document it holds, if it holds just one (a byte order mark is ignored), else the text itself. */
export const fromText = (text: string): ToolValue => {
  const clean = text.startsWith("\uFEFF") ? text.slice(1) : text
  return looksLikeJson(clean)
    ? Either.match(parse(clean), {
      onLeft: () => ({ json: clean, raw: clean }),
      onRight: (json) =>
        typeof json === "object" && json !== null ? { json, raw: clean } : { json, text: clean.trim(), raw: clean }
    })
    : { json: clean, raw: clean }
}

const looksLikeJson = (text: string): boolean => /^\s*(?:[[{"]|-?\d|true|false|null)/.test(text)

const isDocument = (value: ToolValue): boolean => typeof value.json !== "string" || value.text !== undefined

/** Binary data never reaches a text; its size is told instead. */
const withoutBinary = (block: Json): Json => {
  if (!isJsonObject(block)) return block
  return Object.fromEntries(
    Object.entries(block).map(([key, value]): [string, Json] => {
      if ((key === "data" || key === "blob") && typeof value === "string") {
        return [key, `(${value.length} characters omitted)`]
      }
      return [key, key === "resource" ? withoutBinary(value) : value]
    })
  )
}

const textOf = (block: Json): string | undefined =>
  isJsonObject(block) && block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : undefined

/** The value of an MCP `tools/call` result (MCP 2025-11-25, tool results). Total: a strange result is a value as well. */
export const fromCallToolResult = (result: unknown): ToolValue => {
  if (typeof result === "string") return fromText(result)
  if (!isJsonObject(result)) return fromJson(null)
  const { content, structuredContent, toolResult } = result
  const blocks: ReadonlyArray<Json> = Array.isArray(content) ? content : []
  const texts = blocks.map(textOf).filter((text) => text !== undefined)
  const joined = texts.length > 0 ? fromText(texts.join("\n")) : undefined
  if (joined !== undefined && isDocument(joined)) return joined
  if (structuredContent !== undefined && structuredContent !== null) return fromJson(structuredContent)
  if (joined !== undefined) return joined
  if (blocks.length > 0 || toolResult === undefined) return fromJson(blocks.map(withoutBinary))
  return typeof toolResult === "string" ? fromText(toolResult) : fromJson(toolResult)
}
