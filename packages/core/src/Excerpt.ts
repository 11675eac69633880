import type { Json } from "./Json.js"
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

const members = (value: ReadonlyArray<Json> | { readonly [key: string]: Json }): Array<Pending> => {
  const isArray = Array.isArray(value)
  const pending: Array<Pending> = [{ text: isArray ? "[" : "{" }]
  let first = true
  for (const [key, member] of Object.entries(value)) {
    const comma = first ? "" : ","
    pending.push({ text: isArray ? comma : `${comma}${JSON.stringify(key)}:` }, { value: member })
    first = false
  }
  pending.push({ text: isArray ? "]" : "}" })
  return pending.reverse()
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
    else if (Array.isArray(next.value) || isJsonObject(next.value)) for (const part of members(next.value)) stack.push(part)
    else out += JSON.stringify(typeof next.value === "string" ? clip(next.value, limit) : next.value)
  }
  return out
}

/** One line of JSON text for a reason: at most about 80 characters of foreign data. */
export const excerpt = (json: Json): string => clip(oneLine(writeJson(json, EXCERPT)), EXCERPT)

/** A count with its noun: `1 item`, `3 items`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`
