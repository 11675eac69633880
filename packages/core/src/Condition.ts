import * as Either from "effect/Either"
import { Refused } from "./Errors.js"
import { clip, counted, excerpt, oneLine } from "./Excerpt.js"
import * as Equality from "./internal/equality.js"
import { includes } from "./internal/includes.js"
import { nearest } from "./internal/nearest.js"
import { isJson, isJsonObject, type Json, type JsonObject } from "./Json.js"
import * as JsonPath from "./JsonPath.js"
import * as Pattern from "./Pattern.js"
import type { ToolValue } from "./ToolResult.js"

/** The comparisons of a leaf (SPEC "Conditions"). */
export const operators = ["eq", "ne", "gt", "gte", "lt", "lte", "contains", "match", "exists"] as const
export type Operator = (typeof operators)[number]

type Order = "gt" | "gte" | "lt" | "lte"

type Test =
  | { readonly is: "eq" | "ne" | "contains"; readonly value: Json }
  | { readonly is: Order; readonly value: string | number }
  | { readonly is: "match"; readonly value: string; readonly pattern: Pattern.Pattern }
  | { readonly is: "exists"; readonly value: boolean }

type Node =
  | { readonly _tag: "Leaf"; readonly path: JsonPath.JsonPath; readonly test: Test }
  | { readonly _tag: "Not"; readonly of: Node }
  | { readonly _tag: "And" | "Or"; readonly of: ReadonlyArray<Node> }

/** A condition whose static checks all passed. `source` is the declaration it came from, and compiles to it again. */
export interface Compiled {
  readonly source: Json
  readonly node: Node
}

/** Three-valued: what leads nowhere, or does not fit its operator, is undecided, which means "not yet". */
export interface Verdict {
  readonly _tag: "Holds" | "DoesNotHold" | "Undecided"
  /** why, in one clause: `status is "running", not "done"`, `path "stauts" not found; keys there: status, progress` */
  readonly reason: string
}

const maxDepth = 64
const maxNodes = 1_000
const maxValueDepth = 500
/** of all patterns of a condition: compiling this many takes some 200 ms */
const maxPatternParts = 10_000

interface Allowance {
  nodes: number
  patternParts: number
}

type Check<A> = Either.Either<A, Refused>

/** `at` is where the fault is, such as `until.and[1].value`; its first word is the parameter. */
const refusal = (at: string, message: string): Refused =>
  new Refused({ message: `${clip(at, 200)}: ${message}`, field: at.split(/[.[]/, 1)[0] })

const refuse = (at: string, message: string): Check<never> => Either.left(refusal(at, message))

const example = "{\"path\": \"status\", \"is\": \"eq\", \"value\": \"done\"}"

/**
 * Checks all of a condition that can be checked without a value. `field` names the parameter it came in, so that an error
 * says where it is: `until.and[1].value: …`.
 */
export const compile = (input: unknown, field: string): Check<Compiled> => {
  const budget = { nodes: maxNodes, patternParts: maxPatternParts }
  return Either.map(compileNode(input, field, 0, budget), (node) => ({ source: toSource(node), node }))
}

const compileNode = (input: unknown, at: string, depth: number, budget: Allowance): Check<Node> => {
  if (depth > maxDepth) return refuse(at, `a condition may be nested ${maxDepth} levels deep`)
  budget.nodes -= 1
  if (budget.nodes < 0) return refuse(at, `a condition may have ${maxNodes} parts`)
  if (!isJsonObject(input)) return refuse(at, `a condition is an object such as ${example}, got ${excerptOf(input)}`)
  const keys = Object.keys(input)
  const logic = keys.filter((key) => key === "not" || key === "and" || key === "or")
  if (logic.length === 0) return compileLeaf(input, keys, at, budget)
  const other = keys.find((key) => key !== logic[0])
  if (other !== undefined) {
    return refuse(at, `"${logic[0]}" stands alone in its object; "${clip(other, 40)}" cannot be beside it`)
  }
  return logic[0] === "not"
    ? Either.map(compileNode(input["not"], `${at}.not`, depth + 1, budget), (of): Node => ({ _tag: "Not", of }))
    : compileList(input, logic[0] === "and" ? "and" : "or", at, depth, budget)
}

const compileList = (
  input: JsonObject,
  key: "and" | "or",
  at: string,
  depth: number,
  budget: Allowance
): Check<Node> => {
  const list = input[key]
  if (!Array.isArray(list)) return refuse(`${at}.${key}`, `a list of conditions is needed, got ${excerptOf(list)}`)
  if (list.length === 0) return refuse(`${at}.${key}`, "the list is empty; give at least one condition")
  return Either.map(
    Either.all(list.map((item, position) => compileNode(item, `${at}.${key}[${position}]`, depth + 1, budget))),
    (of): Node => ({ _tag: key === "and" ? "And" : "Or", of })
  )
}

const compileLeaf = (
  input: JsonObject,
  keys: ReadonlyArray<string>,
  at: string,
  budget: Allowance
): Check<Node> => {
  const unknown = keys.find((key) => key !== "path" && key !== "is" && key !== "value")
  if (unknown !== undefined) {
    return refuse(at, `"${clip(unknown, 40)}" is not part of a condition; a leaf has path, is and value: ${example}`)
  }
  return Either.flatMap(
    compilePath(input["path"], at),
    (path) => Either.map(compileTest(input, at, budget), (test): Node => ({ _tag: "Leaf", path, test }))
  )
}

const compilePath = (path: Json | undefined, at: string): Check<JsonPath.JsonPath> => {
  if (path === undefined || path === null) return Either.right([])
  if (typeof path !== "string") return refuse(`${at}.path`, `a path is a string, got ${excerptOf(path)}`)
  return Either.mapLeft(
    JsonPath.parse(path),
    ({ column, message }) => refusal(`${at}.path`, `${message} (column ${column} of "${clip(oneLine(path), 80)}")`)
  )
}

const isOperator = (is: Json | undefined): is is Operator => operators.some((operator) => operator === is)

/** What people write in other languages for an operator. */
const synonyms: Readonly<Record<string, Operator>> = {
  "==": "eq",
  "===": "eq",
  "=": "eq",
  equals: "eq",
  equal: "eq",
  is: "eq",
  "!=": "ne",
  "!==": "ne",
  neq: "ne",
  not_equals: "ne",
  ">": "gt",
  ">=": "gte",
  ge: "gte",
  "<": "lt",
  "<=": "lte",
  le: "lte",
  includes: "contains",
  in: "contains",
  matches: "match",
  regex: "match",
  regexp: "match",
  present: "exists",
  defined: "exists"
}

const unknownOperator = (is: Json | undefined, at: string): Check<never> => {
  if (is === undefined) return refuse(at, `"is" is missing; it is one of ${operators.join(", ")}: ${example}`)
  const word = typeof is === "string" ? is.trim().toLowerCase() : ""
  const near = Object.hasOwn(synonyms, word) ? synonyms[word] : nearest(word, operators)
  return refuse(
    `${at}.is`,
    `${excerptOf(is)} is not an operator${near === undefined ? "" : `, did you mean "${near}"?`}; there are ${
      operators.join(", ")
    }`
  )
}

const compileMatch = (value: string, at: string, budget: Allowance): Check<Test> => {
  if (budget.patternParts <= 0) {
    return refuse(
      at,
      `the patterns of a condition have more than ${maxPatternParts} parts together; use fewer or smaller ones`
    )
  }
  return Either.mapBoth(Pattern.compile(value), {
    onLeft: (message) => refusal(at, message),
    onRight: (pattern): Test => {
      budget.patternParts -= pattern.size
      return { is: "match", value, pattern }
    }
  })
}

const compileTest = (input: JsonObject, at: string, budget: Allowance): Check<Test> => {
  const is = input["is"]
  if (!isOperator(is)) return unknownOperator(is, at)
  const value = Object.hasOwn(input, "value") ? input["value"] : undefined
  if (value === undefined) return refuse(at, `"value" is missing; "${is}" compares with it`)
  if (!isJson(value, maxValueDepth)) {
    return refuse(`${at}.value`, `a value is JSON, nested at most ${maxValueDepth} levels deep`)
  }
  switch (is) {
    case "eq":
    case "ne":
    case "contains":
      return Either.right({ is, value })
    case "exists":
      return typeof value === "boolean"
        ? Either.right({ is, value })
        : refuse(`${at}.value`, `"exists" needs true or false, got ${excerptOf(value)}`)
    case "match":
      return typeof value === "string"
        ? compileMatch(value, `${at}.value`, budget)
        : refuse(`${at}.value`, `"match" needs a regular expression as a string, got ${excerptOf(value)}`)
    default:
      return isNumeric(value)
        ? Either.right({ is, value })
        : refuse(`${at}.value`, `"${is}" needs a number or a numeric string, got ${excerptOf(value)}`)
  }
}

const excerptOf = (value: unknown): string =>
  value === undefined ? "nothing" : isJson(value, maxValueDepth) ? excerpt(value) : `a ${typeof value} that is no JSON`

/** The declaration of a compiled condition. */
const toSource = (node: Node): Json => {
  switch (node._tag) {
    case "Leaf":
      return {
        ...(node.path.length === 0 ? {} : { path: JsonPath.render(node.path) }),
        is: node.test.is,
        value: node.test.value
      }
    case "Not":
      return { not: toSource(node.of) }
    case "And":
      return { and: node.of.map(toSource) }
    case "Or":
      return { or: node.of.map(toSource) }
  }
}

const holds = (reason: string): Verdict => ({ _tag: "Holds", reason })
const doesNotHold = (reason: string): Verdict => ({ _tag: "DoesNotHold", reason })
const undecided = (reason: string): Verdict => ({ _tag: "Undecided", reason })
const decide = (yes: boolean, reason: string): Verdict => yes ? holds(reason) : doesNotHold(reason)

/** Judges a value; pure and total, and bounded in time. */
export const judge = (condition: Compiled, value: ToolValue): Verdict =>
  judgeNode(condition.node, value, Pattern.newBudget())

const judgeNode = (node: Node, value: ToolValue, budget: Pattern.Budget): Verdict => {
  switch (node._tag) {
    case "Leaf":
      return judgeLeaf(node.path, node.test, value, budget)
    case "Not": {
      const { _tag, reason } = judgeNode(node.of, value, budget)
      return _tag === "Undecided" ? undecided(reason) : decide(_tag === "DoesNotHold", `not: ${reason}`)
    }
    case "And":
      return judgeAll(node.of, value, "DoesNotHold", budget)
    case "Or":
      return judgeAll(node.of, value, "Holds", budget)
  }
}

const reasonsShown = 3

const summary = (verdicts: ReadonlyArray<Verdict>): string => {
  const shown = verdicts.slice(0, reasonsShown).map(({ reason }) => clip(reason, 300))
  const more = verdicts.length - shown.length
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`
}

/**
 * Kleene: one `absorbing` verdict decides; else one undecided leaves it open; else the other verdict. An `and` that does
 * not hold names its undecided parts as well, so that a typo shows before the rest is true.
 */
const judgeAll = (
  nodes: ReadonlyArray<Node>,
  value: ToolValue,
  absorbing: "Holds" | "DoesNotHold",
  budget: Pattern.Budget
): Verdict => {
  const verdicts = nodes.map((node) => judgeNode(node, value, budget))
  const deciding = verdicts.filter(({ _tag }) => _tag === absorbing)
  const open = verdicts.filter(({ _tag }) => _tag === "Undecided")
  if (deciding.length > 0) {
    return { _tag: absorbing, reason: summary(absorbing === "Holds" ? deciding : [...deciding, ...open]) }
  }
  return open.length > 0
    ? undecided(summary(open))
    : { _tag: absorbing === "Holds" ? "DoesNotHold" : "Holds", reason: summary(verdicts) }
}

/** A bare scalar has two readings: what holds for either holds; else the first one that is decided speaks. */
const eitherReading = (
  actual: Json,
  text: string | undefined,
  judgeOne: (reading: Json) => Verdict
): Verdict => {
  const first = judgeOne(actual)
  if (text === undefined || first._tag === "Holds") return first
  const second = judgeOne(text)
  return second._tag === "Holds" || first._tag === "Undecided" ? second : first
}

const judgeLeaf = (path: JsonPath.JsonPath, test: Test, value: ToolValue, budget: Pattern.Budget): Verdict => {
  const found = JsonPath.resolve(path, value.json)
  const subject = path.length === 0 ? "the value" : clip(JsonPath.render(path), 120)
  if (test.is === "exists") {
    const exists = found._tag === "Found"
    return decide(exists === test.value, exists ? `${subject} exists` : found.reason)
  }
  if (found._tag === "NotFound") return undecided(found.reason)
  const text = path.length === 0 ? value.text : undefined
  switch (test.is) {
    case "eq":
    case "ne":
      return judgeEquality(subject, test.is, found.value, text, test.value)
    case "contains":
      return eitherReading(found.value, text, (reading) => judgeContains(subject, reading, test.value, budget))
    case "match":
      return eitherReading(found.value, text, (reading) => judgeMatch(subject, reading, test.pattern, budget))
    default:
      return judgeOrder(subject, found.value, test)
  }
}

const judgeEquality = (
  subject: string,
  is: "eq" | "ne",
  actual: Json,
  text: string | undefined,
  expected: Json
): Verdict => {
  const readings = text === undefined ? [actual] : [actual, text]
  const equal = readings.some((reading) => Equality.equals(reading, expected))
  const note = Equality.lostDigits(actual, expected)
  if (equal) return decide(is === "eq", `${subject} is ${excerpt(actual)}${note}`)
  if (text === undefined) {
    const slip = Equality.typeSlip(actual, expected)
    if (slip !== undefined) return undecided(`${subject} is ${excerpt(actual)}, ${slip}${note}`)
  }
  return decide(
    is === "ne",
    `${subject} is ${excerpt(actual)}, not ${excerpt(expected)}${Equality.caseNote(actual, expected)}${note}`
  )
}

/** What a search costs of the budget: a unit for so many characters of a text, so many units for an item of a list. */
const charsPerUnit = 20
const unitsPerItem = 10

const judgeContains = (subject: string, actual: Json, expected: Json, budget: Pattern.Budget): Verdict => {
  if (budget.left <= 0) {
    return undecided(`the condition takes too long on ${subject}; ask for less, or give a path to a smaller part`)
  }
  if (Array.isArray(actual)) {
    budget.left -= actual.length * unitsPerItem
    if (actual.some((item) => Equality.equals(item, expected))) return holds(`${subject} contains ${excerpt(expected)}`)
    const slip = actual.map((item) => Equality.typeSlip(item, expected)).find((found) => found !== undefined)
    const counts = `${subject} has ${counted(actual.length, "item")}`
    return slip === undefined
      ? doesNotHold(`${counts}, none is ${excerpt(expected)}`)
      : undecided(`${counts}; one is ${slip}`)
  }
  if (typeof actual !== "string") {
    return undecided(`${subject} is ${excerpt(actual)}; "contains" looks into strings and lists`)
  }
  if (typeof expected !== "string") {
    return undecided(`${subject} is a string; "contains" needs a string to look for, got ${excerpt(expected)}`)
  }
  budget.left -= actual.length / charsPerUnit
  return includes(actual, expected)
    ? holds(`${subject} contains ${excerpt(expected)}`)
    : doesNotHold(
      `${subject} is ${excerpt(actual)}, without ${excerpt(expected)}${Equality.caseNote(actual, expected, includes)}`
    )
}

const judgeMatch = (subject: string, actual: Json, pattern: Pattern.Pattern, budget: Pattern.Budget): Verdict => {
  if (typeof actual !== "string" && typeof actual !== "number" && typeof actual !== "boolean") {
    return undecided(`${subject} is ${excerpt(actual)}; "match" looks at strings, numbers and booleans`)
  }
  const text = String(actual)
  const found = pattern.search(text, budget)
  if (found === "yes") return holds(`${subject} matches ${excerpt(pattern.source)}`)
  return found === "no"
    ? doesNotHold(`${subject} is ${excerpt(actual)}, which does not match ${excerpt(pattern.source)}`)
    : undecided(
      `${excerpt(pattern.source)} takes too long on ${subject}, ${
        counted(text.length, "character")
      }, and was not found in the `
        + "part that was searched; use \"contains\", a simpler pattern, or a path to a shorter text"
    )
}

const numeric = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/
const integer = /^\s*[+-]?\d+\s*$/

const isNumeric = (value: Json): value is number | string =>
  typeof value === "number"
    ? Number.isFinite(value)
    : typeof value === "string" && value.length <= 1_000 && numeric.test(value) && Number.isFinite(Number(value))

const signs = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const

const judgeOrder = (
  subject: string,
  actual: Json,
  test: { readonly is: Order; readonly value: string | number }
): Verdict => {
  if (!isNumeric(actual)) return undecided(`${subject} is ${excerpt(actual)}, which is not a number`)
  const difference = compare(actual, test.value)
  const yes = test.is === "gt"
    ? difference > 0
    : test.is === "gte"
    ? difference >= 0
    : test.is === "lt"
    ? difference < 0
    : difference <= 0
  const note = Equality.lostDigits(actual, test.value)
  return decide(
    yes,
    `${subject} is ${excerpt(actual)}${yes ? "" : `, not ${signs[test.is]} ${excerpt(test.value)}`}${note}`
  )
}

/** Integers in text compare exactly, however long. */
const compare = (left: string | number, right: string | number): number => {
  if (typeof left === "string" && typeof right === "string" && integer.test(left) && integer.test(right)) {
    const [a, b] = [toBigInt(left), toBigInt(right)]
    return a < b ? -1 : a > b ? 1 : 0
  }
  return Number(left) - Number(right)
}

const toBigInt = (text: string): bigint => BigInt(text.trim().replace(/^\+/, ""))
