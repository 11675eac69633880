import * as Either from "effect/Either"
import { RE2Set } from "re2js"
import { clip } from "./Excerpt.js"
import { includes } from "./internal/includes.js"
import { translate, type Translated } from "./internal/patternSyntax.js"

/**
 * How much one judgement may search: about one unit a character, and more for each new state that a text drives a
 * pattern into. 4 million units are some 50 ms, so that a condition never makes other sentinels late (SPEC "Conditions").
 */
export interface Budget {
  left: number
}

export const newBudget = (): Budget => ({ left: 4_000_000 })

/** `unknown`: the budget ended before the text did, and no match was found until then. */
export type Found = "yes" | "no" | "unknown"

/** A regular expression that takes linear time in the text, whatever the pattern. */
export interface Pattern {
  readonly source: string
  /** how many parts the engine makes of it; the time of a compilation grows with it */
  readonly size: number
  readonly search: (text: string, budget: Budget) => Found
}

const maxPattern = 2_000
const literal = /^[^\\^$.*+?()[\]{}|]*$/

/** The engine keeps the states it has met; when they fill this many bytes it forgets them and goes on. */
const stateMemory = 1024 * 1024

const lineStart = 1
const textStart = 4
const afterWord = 16
const textEnd = -1

/** The part of re2js' automaton that a search with a budget drives: states linked by classes of characters. */
interface State {
  readonly isMatch: boolean
  readonly next: ReadonlyArray<State | null> | null
  readonly nfaStates: ReadonlyArray<number>
}

type Automaton = RE2Set["dfa"]

const advance = (dfa: Automaton, state: State, kind: number, rune: number, budget: Budget): State => {
  budget.left -= 400 + 40 * state.nfaStates.length + dfa.numClasses
  const next: State | null = dfa.step(state, kind, rune, RE2Set.UNANCHORED)
  if (next !== null) return next
  const kept: State = dfa.resetCache(state)
  return dfa.step(kept, kind, rune, RE2Set.UNANCHORED)
}

const contextAt = (text: string, position: number): number => {
  if (position === 0) return textStart | lineStart
  const before = text.charAt(position - 1)
  return before === "\n" ? lineStart : /\w/.test(before) ? afterWord : 0
}

/** Looks for a match that begins at `from` or later and is complete before `to`. */
const scan = (dfa: Automaton, text: string, from: number, to: number, budget: Budget): boolean => {
  let state: State = dfa.start({ context: () => contextAt(text, from), step: () => textEnd }, from)
  for (let position = from; position < to && budget.left > 0;) {
    const rune = text.codePointAt(position) ?? 0
    const kind = rune < 256 ? dfa.latin1Class[rune] ?? 0 : dfa.runeClass(rune)
    state = state.next?.[kind] ?? advance(dfa, state, kind, rune, budget)
    if (state.isMatch) return true
    position += rune > 0xffff ? 2 : 1
    budget.left -= 1
  }
  return to === text.length && budget.left > 0 && advance(dfa, state, dfa.numClasses, textEnd, budget).isMatch
}

/** A text longer than the budget is looked at from both ends: a match in either part is a match of the whole. */
const search = (dfa: Automaton, text: string, budget: Budget): Found => {
  if (text.length < budget.left) {
    if (scan(dfa, text, 0, text.length, budget)) return "yes"
    return budget.left > 0 ? "no" : "unknown"
  }
  const half = Math.max(0, Math.floor(budget.left / 2) - 1_000)
  const ends = { head: { left: half }, tail: { left: half } }
  budget.left = 0
  const tail = text.length - Math.floor(half / 2)
  return scan(dfa, text, 0, half, ends.head) || scan(dfa, text, tail, text.length, ends.tail) ? "yes" : "unknown"
}

const prepare = (source: string, { parts, text: translated }: Translated): Pattern => {
  if (literal.test(source)) return { source, size: 0, search: (text) => includes(text, source) ? "yes" : "no" }
  const set = new RE2Set(RE2Set.UNANCHORED, 0, stateMemory)
  set.add(translated)
  set.compile()
  return { source, size: parts, search: (text, budget) => search(set.dfa, text, budget) }
}

const explain = (error: unknown): string =>
  `not a regular expression that can be used: ${clip(String(error).replace(/^.*error parsing regexp: /, ""), 120)}`

/** Compiles a pattern in JavaScript's notation; the error says what is wrong and what would be right. */
export const compile = (source: string): Either.Either<Pattern, string> =>
  source.length > maxPattern
    ? Either.left(`the pattern has ${source.length} characters, more than ${maxPattern}`)
    : Either.flatMap(translate(source), (translated) =>
      Either.try({ try: () => prepare(source, translated), catch: explain }))
