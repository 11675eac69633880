import * as Either from "effect/Either"
import { RE2JS } from "re2js"

/** A regular expression that takes linear time in the text, whatever the pattern (RE2 semantics). */
export interface Pattern {
  readonly source: string
  readonly matches: (text: string) => boolean
}

/** Of a longer text the first half and the last half of this many characters are looked at. */
export const longestText = 4 * 1024 * 1024

const maxPattern = 2_000

/** The constructs of JavaScript that no linear-time engine has. Escaped characters and classes are skipped. */
const tokens = /\\(?:k<[^>]*>|[1-9])|\\.|\[(?:\\.|[^\]\\])*\]|\(\?<?[=!]/gs

const advice: Readonly<Record<string, string>> = {
  "(?=": "look-ahead (?=…) is not supported; join two conditions with \"and\"",
  "(?!": "negative look-ahead (?!…) is not supported; write {\"not\": {…, \"is\": \"match\", …}} for the part that must not match",
  "(?<=": "look-behind (?<=…) is not supported; join two conditions with \"and\"",
  "(?<!": "negative look-behind (?<!…) is not supported; write {\"not\": {…, \"is\": \"match\", …}} for the part that must not match"
}

const unsupported = (source: string): string | undefined => {
  for (const [token] of source.matchAll(tokens)) {
    if (token.startsWith("(?")) return advice[token]
    if (/^\\(?:[1-9]|k<)/.test(token)) {
      return `the back-reference ${token} is not supported; write the repeated text out, or join conditions with "and"`
    }
  }
  return undefined
}

/** Compiles a pattern in JavaScript's or RE2's notation; the error says what is wrong and what would be right. */
export const compile = (source: string): Either.Either<Pattern, string> => {
  if (source.length > maxPattern) return Either.left(`the pattern has ${source.length} characters, more than ${maxPattern}`)
  const refused = unsupported(source)
  if (refused !== undefined) return Either.left(refused)
  return Either.try({
    try: () => {
      const pattern = RE2JS.compile(RE2JS.translateRegExp(source))
      return { source, matches: (text: string) => parts(text).some((part) => pattern.test(part)) }
    },
    catch: (error) => `not a regular expression: ${error instanceof Error ? error.message : String(error)}`
  })
}

const parts = (text: string): ReadonlyArray<string> =>
  text.length <= longestText
    ? [text]
    : [text.slice(0, longestText / 2), text.slice(-longestText / 2)]
