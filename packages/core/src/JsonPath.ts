import * as Either from "effect/Either"
import { clip, counted, excerpt, oneLine } from "./Excerpt.js"
import { isJsonObject, type Json } from "./Json.js"

/** A parsed path: keys of objects, and indices of arrays (negative: from the end). Empty = the whole value. */
export type JsonPath = ReadonlyArray<string | number>

/** What is wrong with a path text, and at which column (1-based, in UTF-16 units). */
export interface PathError {
  readonly column: number
  readonly message: string
}

export type Resolution =
  | { readonly _tag: "Found"; readonly value: Json }
  | { readonly _tag: "NotFound"; readonly reason: string }

const fail = (column: number, message: string): Either.Either<never, PathError> => Either.left({ column, message })

const bareName = /[^.[\]"'*?()\s,]+/y
const index = /\[\s*(-?\d+)\s*\]/y
const quoted = /\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\]/y

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" }

const unescape = (text: string): string =>
  text.replace(
    /\\(?:u([0-9a-fA-F]{4})|(.))/gs,
    (_, hex: string | undefined, char: string) =>
      hex === undefined ? escapes[char] ?? char : String.fromCharCode(Number.parseInt(hex, 16))
  )

const matchAt = (pattern: RegExp, text: string, at: number): RegExpExecArray | null => {
  pattern.lastIndex = at
  return pattern.exec(text)
}

const indexAt = (text: string, at: number): RegExpExecArray | null => {
  const found = matchAt(index, text, at)
  return found !== null && Number.isSafeInteger(Number(found[1])) ? found : null
}

/** Why the text at `at` is no segment, by what it looks like in other path languages. */
const refuse = (text: string, at: number): Either.Either<never, PathError> => {
  const rest = text.slice(at)
  const column = at + 1
  if (rest.startsWith("..")) return fail(column, "recursive descent (..) is not supported; write the whole path")
  if (/^\.?\[?\s*\*/.test(rest)) return fail(column, "wildcards (*) are not supported; name one index, such as [0]")
  if (/^\[\s*\?|^[?(]/.test(rest)) return fail(column, "filters are not supported; name one index, such as [0]")
  if (/^\[\s*(?:-?\d+\s*)?:/.test(rest)) return fail(column, "slices are not supported; name one index, such as [0]")
  if (/^\[[^\]]*,/.test(rest)) return fail(column, "several keys at once are not supported; name one")
  if (/^\[\s*\]/.test(rest)) return fail(column, "an index or a quoted key is missing between the brackets")
  if (rest.startsWith("[")) {
    return fail(column, "a bracket takes a whole number, such as [0], or a quoted key, such as [\"a b\"]")
  }
  if (at === 0 && rest.startsWith(".")) {
    return fail(column, `a path does not start with a dot; write ${excerpt(rest.slice(1))}`)
  }
  if (rest === "." || rest === "") return fail(column, "a key is missing after the dot")
  return fail(column, `${excerpt(rest.charAt(0))} cannot stand here; quote a key with special characters: ["a b"]`)
}

/**
 * Parses `status`, `tasks[0].exit_code`, `[-1].name`, `a["key.with.dots"]`, `['x y']`, with an optional leading `$` (SPEC
 * "Conditions"). The grammar is smaller than JSONPath on purpose: one path leads to one place.
 */
export const parse = (text: string): Either.Either<JsonPath, PathError> => {
  const path: Array<string | number> = []
  let at = /^\$(?=$|[.[])/.test(text) ? 1 : 0
  const rooted = at === 1
  while (at < text.length) {
    const bracket = indexAt(text, at)
    const key = bracket === null ? matchAt(quoted, text, at) : null
    const dotted = text.charAt(at) === "."
    const first = path.length === 0 && !rooted
    const name = bracket === null && key === null && dotted !== first
      ? matchAt(bareName, text, dotted ? at + 1 : at)
      : null
    if (bracket !== null) path.push(Number(bracket[1]))
    else if (key !== null) path.push(unescape(key[1] ?? key[2] ?? ""))
    else if (name !== null) path.push(name[0])
    else return refuse(text, at)
    at += (bracket ?? key ?? name)?.[0].length ?? 0
    if (name !== null && dotted) at += 1
  }
  return Either.right(path)
}

const isBare = (key: string): boolean => /^[^.[\]"'*?()\s,$]+$/.test(key)

/** The shortest text that parses to this path. */
export const render = (path: JsonPath): string =>
  path.map((segment, position) => {
    if (typeof segment === "number") return `[${segment}]`
    return isBare(segment) ? (position === 0 ? segment : `.${segment}`) : `[${JSON.stringify(segment)}]`
  }).join("")

const keysShown = 12

const keysOf = (value: { readonly [key: string]: Json }): string => {
  const keys = Object.keys(value)
  if (keys.length === 0) return "the object there is empty"
  const shown = keys.slice(0, keysShown).map((key) => clip(oneLine(isBare(key) ? key : JSON.stringify(key)), 40))
  const more = keys.length - shown.length
  return `keys there: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

const missing = (path: JsonPath, depth: number, value: Json): string => {
  const whole = clip(render(path), 120)
  const segment = path[depth]
  const place = depth === 0 ? "the value" : clip(render(path.slice(0, depth)), 120)
  if (Array.isArray(value)) {
    return typeof segment === "number"
      ? `path "${whole}" not found; ${place} has ${counted(value.length, "item")}`
      : `path "${whole}" not found; ${place} is a list of ${counted(value.length, "item")}, write an index such as [0]`
  }
  if (isJsonObject(value)) {
    const near = typeof segment === "string"
      ? Object.keys(value).find((key) => key.toLowerCase() === segment.toLowerCase())
      : undefined
    return `path "${whole}" not found; ${
      near === undefined ? "" : `"${clip(oneLine(near), 40)}" differs in letter case only; `
    }${keysOf(value)}`
  }
  return `path "${whole}" not found; ${place} is ${excerpt(value)}, which has no keys or items`
}

const step = (value: Json, segment: string | number): { readonly value: Json } | undefined => {
  if (typeof segment === "string") {
    return isJsonObject(value) && Object.hasOwn(value, segment) ? { value: value[segment] ?? null } : undefined
  }
  const item = Array.isArray(value) ? value.at(segment) : undefined
  return item === undefined ? undefined : { value: item }
}

/** Follows own properties only; where that ends, the reason names what is there. */
export const resolve = (path: JsonPath, json: Json): Resolution => {
  let value = json
  for (const [depth, segment] of path.entries()) {
    const next = step(value, segment)
    if (next === undefined) return { _tag: "NotFound", reason: missing(path, depth, value) }
    value = next.value
  }
  return { _tag: "Found", value }
}
