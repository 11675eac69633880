import type { Json, JsonObject } from "./Json.js"
import { isJsonObject } from "./Json.js"

/** What may stand in a reason of the foreign data it speaks about, in UTF-16 units. */
const EXCERPT = 80

/**
 * The first `limit` UTF-16 units of a text, with `…` where something was left out. A surrogate pair is never cut.
 */
export const clip = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const unit = text.charCodeAt(limit - 1)
  return `${text.slice(0, unit >= 0xd800 && unit <= 0xdbff ? limit - 1 : limit)}…`
}

/** The same text on one line, without control characters or marks that reorder or break lines. */
export const oneLine = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069\s]+/gu, " ")

/** A piece of JSON text still to be written: punctuation as it is, or a value. */
type Pending = { readonly text: string } | { readonly value: Json }

/** The parts of a list or an object, last first; of its members no more than `limit`. */
const parts = (value: ReadonlyArray<Json> | JsonObject, limit: number): Array<Pending> => {
  const pending: Array<Pending> = []
  const comma = () => pending.length === 0 ? "" : ","
  if (isJsonObject(value)) {
    for (const key of Object.keys(value).slice(0, limit)) {
      pending.push({ text: `${comma()}${JSON.stringify(key)}:` }, { value: value[key] ?? null })
    }
  } else {
    for (const item of value.slice(0, limit)) pending.push({ text: comma() }, { value: item })
  }
  const [open, close] = isJsonObject(value) ? ["{", "}"] : ["[", "]"]
  return [{ text: open }, ...pending, { text: close }].toReversed()
}

/**
 * JSON text of a value, as `JSON.stringify` writes it, but without recursion (a deeply nested value cannot exhaust the
 * stack). Stops soon after `limit` UTF-16 units.
 */
export const writeJson = (json: Json, limit = Number.POSITIVE_INFINITY): string => {
  const stack: Array<Pending> = [{ value: json }]
  let out = ""
  for (let next = stack.pop(); next !== undefined && out.length <= limit; next = stack.pop()) {
    if ("text" in next) out += next.text
    else if (typeof next.value === "object" && next.value !== null) {
      for (const part of parts(next.value, limit)) stack.push(part)
    } else out += JSON.stringify(typeof next.value === "string" ? clip(next.value, limit) : next.value)
  }
  return out
}

/** One line of JSON text for a reason: at most about 80 characters of foreign data. */
export const excerpt = (json: Json): string => clip(oneLine(writeJson(json, EXCERPT)), EXCERPT)

/** A count with its noun: `1 item`, `3 items`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`
