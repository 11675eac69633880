/** A JSON value, as MCP carries it. */
export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** Whether a value is JSON, nested at most `depth` levels deep (so a cycle is none). */
export const isJson = (value: unknown, depth: number): value is Json => {
  if (typeof value === "number") return Number.isFinite(value)
  if (value === null || typeof value === "string" || typeof value === "boolean") return true
  return typeof value === "object" && depth > 0 && Object.values(value).every((member) => isJson(member, depth - 1))
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
