import { isJsonObject, type Json } from "../Json.js"

/** Deep JSON equality, strict on type, without recursion: a deeply nested value cannot exhaust the stack. */
export const equals = (left: Json, right: Json): boolean => {
  if (typeof left !== "object" || typeof right !== "object") return left === right
  const pairs: Array<readonly [Json, Json]> = [[left, right]]
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [a, b] = pair
    if (a === b) continue
    if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) return false
      a.forEach((item, position) => pairs.push([item, b[position] ?? null]))
    } else if (isJsonObject(a) && isJsonObject(b)) {
      const keys = Object.keys(a)
      if (keys.length !== Object.keys(b).length || !keys.every((key) => Object.hasOwn(b, key))) return false
      for (const key of keys) pairs.push([a[key] ?? null, b[key] ?? null])
    } else return false
  }
  return true
}

/** A scalar against a string of the same text (`100`, `"100"`) is a slip of the type, which must decide nothing. */
export const typeSlip = (actual: Json, expected: Json): string | undefined => {
  const [text, other] = typeof actual === "string" ? [actual, expected] : [expected, actual]
  const isSlip = typeof text === "string" && typeof other !== "string" && typeof other !== "object"
    && (String(other) === text || (isLarge(other) && /^-?\d{1,400}$/.test(text) && Number(text) === other))
  const isNullSlip = text === "null" && other === null
  return isSlip || isNullSlip
    ? `a ${typeOf(actual)}, and the condition compares with the ${
      typeOf(expected)
    } of the same text; write the value with its type`
    : undefined
}

const typeOf = (value: Json): string => value === null ? "null" : typeof value

/** The longest text in which a difference in letter case is looked for. */
const caseNoteChars = 100_000

/** Tells of a text that would be `related` to the expected one but for its letter case. */
export const caseNote = (
  actual: Json,
  expected: Json,
  related: (actual: string, expected: string) => boolean = Object.is
): string =>
  typeof actual === "string" && typeof expected === "string" && actual.length <= caseNoteChars &&
    related(actual.toLowerCase(), expected.toLowerCase())
    ? " (it differs in letter case only)"
    : ""

const isLarge = (value: Json): boolean => typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER

export const lostDigits = (actual: Json, expected: Json): string =>
  isLarge(actual) || isLarge(expected)
    ? " (integers beyond 2^53 compare as doubles, their last digits are lost; strings of digits compare exactly)"
    : ""
