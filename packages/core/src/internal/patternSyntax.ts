import * as Either from "effect/Either"
import { clip, excerpt } from "../Excerpt.js"

/** Repetitions are written out by the engine: a pattern may grow to this many parts. */
export const maxParts = 2_000

const space = "\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
const noSpace =
  "\\x00-\\x08\\x0e-\\x1f!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}"
  + "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"
const noLineEnd = "[^\\n\\r\\x{2028}\\x{2029}]"

const notForm = "write {\"not\": {…, \"is\": \"match\", \"value\": the part that must not match}}, joined by \"and\""

/** Groups that a linear-time engine does not have, and what says the same. */
const groups: ReadonlyArray<readonly [RegExp, string]> = [
  [/\(\?=/y, `look-ahead (?=…) is not supported; join two match conditions with "and"`],
  [/\(\?!/y, `negative look-ahead (?!…) is not supported; ${notForm}`],
  [/\(\?<=/y, `look-behind (?<=…) is not supported; join two match conditions with "and"`],
  [/\(\?<!/y, `negative look-behind (?<!…) is not supported; ${notForm}`],
  [/\(\?P=\w*\)/y, `back-references ((?P=…)) are not supported; write the repeated text out`],
  [/\(\?>/y, "atomic groups (?>…) are not supported; write (?:…)"],
  [/\(\?#/y, "comments (?#…) are not supported; leave them out"]
]

const open = /\((?:\?(?:P?<[^>=!]*>|(?:([ims]*)(?:-([ims]+))?)(:|\))))?/y
const quantifier = /\{(\d+)(?:(,)(\d*))?\}|[*+?]/y
const escape =
  /\\(?:u\{([0-9a-fA-F]+)\}|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|c([a-zA-Z])|[pP](?:\{[^}]*\}|[A-Z])|x(?:[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\})|[^])/uy
const posix = /\[:\^?[a-z]+:\]/y

export interface Translated {
  readonly text: string
  /** how many parts there are once the repetitions are written out */
  readonly parts: number
}

/** The state of one walk over a pattern. */
interface Walk {
  readonly source: string
  at: number
  out: string
  /** what encloses this place: the parts so far, and whether `.` matches line ends */
  readonly scopes: Array<{ parts: number; dotAll: boolean }>
  /** how many parts the piece has that a quantifier would repeat */
  last: number
}

type Step = string | undefined

const exec = (pattern: RegExp, walk: Walk): RegExpExecArray | null => {
  pattern.lastIndex = walk.at
  return pattern.exec(walk.source)
}

const scope = (walk: Walk): { parts: number; dotAll: boolean } => walk.scopes.at(-1) ?? { parts: 0, dotAll: false }

const emit = (walk: Walk, out: string, length: number): undefined => {
  walk.out += out
  walk.at += length
}

const piece = (walk: Walk, out: string, length: number): undefined => {
  scope(walk).parts += 1
  walk.last = 1
  return emit(walk, out, length)
}

const point = (hex: string): string => `\\x{${hex}}`

/** An escape in the engine's notation, or what is wrong with it. */
const escaped = (match: RegExpExecArray, inClass: boolean): Either.Either<string, string> => {
  const [text, braced, high, low, hex, control] = match
  const letter = text.charAt(1)
  if (braced !== undefined) return Either.right(point(braced))
  if (high !== undefined && low !== undefined) {
    const pair = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16))
    return Either.right(point((pair.codePointAt(0) ?? 0).toString(16)))
  }
  if (hex !== undefined) return Either.right(point(hex))
  if (control !== undefined) return Either.right(point((control.charCodeAt(0) % 32).toString(16)))
  if (/^\\[pP]/.test(text) && text.length > 2) {
    return Either.right(text.replace(/(?:Script|sc|General_Category|gc)=/, ""))
  }
  if (letter === "s") return Either.right(inClass ? space : `[${space}]`)
  if (letter === "S") return Either.right(inClass ? noSpace : `[${noSpace}]`)
  if (letter === "b" && inClass) return Either.right("\\x08")
  if ((letter === "B" && !inClass) || /[bdDwWtnvfr]/.test(letter) || /^\\x./.test(text)) return Either.right(text)
  if (letter === "0") return Either.right("\\x00")
  if (/[1-9k]/.test(letter)) {
    return Either.left(
      `the back-reference ${text} is not supported; write the repeated text out, or join conditions with "and"`
    )
  }
  if (/[A-Za-z]/.test(letter)) {
    return Either.left(
      `the escape ${text} is not known${
        letter === "A"
          ? "; for the start of the text write ^"
          : /[zZ]/.test(letter)
          ? "; for the end of the text write $"
          : ""
      }`
    )
  }
  return Either.right(/[!-/:-@[-`{-~]/.test(letter) ? text : text.slice(1))
}

const readEscape = (walk: Walk): Step => {
  const match = exec(escape, walk)
  if (match === null) return "the pattern ends with a backslash; write \\\\ for a backslash"
  return Either.match(escaped(match, false), {
    onLeft: (problem) => problem,
    onRight: (out) => piece(walk, out, match[0].length)
  })
}

/** One member of a character class; a class escape that a `-` follows is no range. */
const readMember = (walk: Walk): Step => {
  if (walk.source.charAt(walk.at) !== "\\") {
    const named = exec(posix, walk)?.[0]
    if (named !== undefined) return emit(walk, named, named.length)
    const char = String.fromCodePoint(walk.source.codePointAt(walk.at) ?? 0)
    return emit(walk, char === "[" ? "\\[" : char, char.length)
  }
  const match = exec(escape, walk)
  if (match === null) return "the pattern ends with a backslash; write \\\\ for a backslash"
  return Either.match(escaped(match, true), {
    onLeft: (problem) => problem,
    onRight: (out) => {
      const length = match[0].length
      const dash = /^\\[dDwWsSpP]/.test(match[0]) &&
        /^-[^\]]/.test(walk.source.slice(walk.at + length, walk.at + length + 2))
      return emit(walk, dash ? `${out}\\-` : out, dash ? length + 1 : length)
    }
  })
}

const readClass = (walk: Walk): Step => {
  const negated = walk.source.startsWith("[^", walk.at)
  const start = walk.at + (negated ? 2 : 1)
  if (walk.source.charAt(start) === "]") {
    return piece(walk, negated ? "[\\x00-\\x{10ffff}]" : "[^\\x00-\\x{10ffff}]", negated ? 3 : 2)
  }
  piece(walk, negated ? "[^" : "[", negated ? 2 : 1)
  while (walk.at < walk.source.length && walk.source.charAt(walk.at) !== "]") {
    const problem = readMember(walk)
    if (problem !== undefined) return problem
  }
  return walk.at < walk.source.length ? emit(walk, "]", 1) : "a character class is not closed; a ] is missing"
}

/** No group captures: names and numbers mean nothing to a test. */
const readOpen = (walk: Walk): Step => {
  const refused = groups.find(([pattern]) => exec(pattern, walk) !== null)
  if (refused !== undefined) return refused[1]
  const match = exec(open, walk)
  const text = match?.[0] ?? "("
  const next = walk.source.charAt(walk.at + 1)
  if (text === "(" && next === "?") return `the group ${excerpt(clip(walk.source.slice(walk.at), 6))} is not supported`
  const [on, off, end] = [match?.[1] ?? "", match?.[2] ?? "", match?.[3]]
  const dotAll = off.includes("s") ? false : on.includes("s") || scope(walk).dotAll
  if (end === ")") {
    scope(walk).dotAll = dotAll
    return on + off === "" ? emit(walk, "", text.length) : emit(walk, text, text.length)
  }
  walk.scopes.push({ parts: 0, dotAll })
  return emit(walk, on + off === "" ? "(?:" : text, text.length)
}

const readClose = (walk: Walk): Step => {
  if (walk.scopes.length === 1) return "a ) closes no group; write \\) for the character"
  walk.last = walk.scopes.pop()?.parts ?? 0
  scope(walk).parts += walk.last
  return emit(walk, ")", 1)
}

const readQuantifier = (walk: Walk, match: RegExpExecArray): Step => {
  const times = match[1] === undefined ? 1 : Math.max(Number(match[1]), Number(match[3] ?? 0), 1)
  const grown = walk.last * (times - 1)
  scope(walk).parts += grown
  walk.last += grown
  const lazy = walk.source.charAt(walk.at + match[0].length) === "?" ? "?" : ""
  return scope(walk).parts > maxParts
    ? `repetitions make the pattern larger than ${maxParts} parts; repeat less`
    : emit(walk, match[0] + lazy, match[0].length + lazy.length)
}

const read = (walk: Walk): Step => {
  const char = walk.source.charAt(walk.at)
  if (char === "\\") return readEscape(walk)
  if (char === "[") return readClass(walk)
  if (char === "(") return readOpen(walk)
  if (char === ")") return readClose(walk)
  if (char === ".") return piece(walk, scope(walk).dotAll ? "." : noLineEnd, 1)
  const repeat = exec(quantifier, walk)
  return repeat === null ? piece(walk, char, 1) : readQuantifier(walk, repeat)
}

/**
 * Says a pattern of JavaScript's notation (as with the flag `u`, but forgiving needless escapes; `(?i)` and the like are
 * understood) in the notation of the linear-time engine, meaning the same. What the engine cannot do is refused by name.
 */
export const translate = (source: string): Either.Either<Translated, string> => {
  const walk: Walk = { source, at: 0, out: "", scopes: [{ parts: 0, dotAll: false }], last: 0 }
  while (walk.at < source.length) {
    const problem = read(walk)
    if (problem !== undefined) return Either.left(problem)
  }
  return walk.scopes.length === 1
    ? Either.right({ text: walk.out, parts: scope(walk).parts })
    : Either.left("a group is not closed; a ) is missing")
}
