import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { Refused } from "../Errors.js"
import { excerpt } from "../Excerpt.js"
import { isJson, isJsonObject, type Json, type JsonObject } from "../Json.js"
import { cut, oneLine } from "./markdown.js"
import { longestDelay } from "./time.js"

const maxDepth = 500

const isNestedWithin = (value: unknown, depth: number): boolean =>
  typeof value !== "object" || value === null ||
  (depth > 0 && Object.values(value).every((member) => isNestedWithin(member, depth - 1)))

const shown = (value: unknown): string =>
  isJson(value, maxDepth) ? excerpt(value) : `a ${typeof value} that is no JSON nested at most ${maxDepth} levels deep`

/** A parameter that may come as it is or as JSON text of it; `expected` completes "… must be". */
const tolerant = <A>(schema: Schema.Schema<A>, expected: string, jsonSchema: JsonObject) =>
  Schema.Union(schema, Schema.parseJson(schema)).annotations({
    jsonSchema,
    message: (issue) => ({ message: `must be ${expected}, got ${shown(issue.actual)}`, override: true })
  })

const Finite = Schema.Number.pipe(Schema.finite())

const JsonRecord = Schema.declare((value): value is JsonObject =>
  isJsonObject(value) && isNestedWithin(value, maxDepth)
)

export const text = (description: string) =>
  Schema.String.pipe(Schema.pattern(/\S/)).annotations({
    jsonSchema: { type: "string", minLength: 1, description },
    message: (issue) => ({ message: `must be a non-empty string, got ${shown(issue.actual)}`, override: true })
  })

/** A duration in ms. Beyond 2^31 - 1 a platform timer would fire at once, so that it is refused. */
export const millis = (description: string) =>
  tolerant(
    Finite.pipe(Schema.between(0, longestDelay)),
    `a number of milliseconds from 0 to ${longestDelay}`,
    { type: "number", minimum: 0, maximum: longestDelay, description }
  )

export const count = (description: string, minimum: number) =>
  tolerant(
    Schema.Int.pipe(Schema.greaterThanOrEqualTo(minimum), Schema.lessThanOrEqualTo(Number.MAX_SAFE_INTEGER)),
    `a whole number of at least ${minimum}`,
    { type: "integer", minimum, description }
  )

const emptyText = Schema.transform(Schema.Literal(""), JsonRecord, {
  decode: (): JsonObject => ({}),
  encode: () => "" as const
})

export const object = (description: string) =>
  Schema.Union(JsonRecord, emptyText, Schema.parseJson(JsonRecord)).annotations({
    jsonSchema: { type: "object", description },
    message: (issue) => ({
      message: `must be a JSON object such as {"id": 1}, got ${shown(issue.actual)}`,
      override: true
    })
  })

/** A condition: published with its first level spelt out, since providers refuse `$ref` and recursion in a schema. */
export const condition = (description: string) => {
  const nested = { type: "object", description: "a condition of the same form" }
  return Schema.Union(JsonRecord, Schema.parseJson(JsonRecord)).annotations({
    jsonSchema: {
      type: "object",
      description,
      properties: {
        path: {
          type: "string",
          description: "where to look: status, tasks[0].exit_code, a[\"b.c\"]; none = whole value"
        },
        is: { type: "string", enum: ["eq", "ne", "gt", "gte", "lt", "lte", "contains", "match", "exists"] },
        value: { description: "what to compare with" },
        not: nested,
        and: { type: "array", items: nested },
        or: { type: "array", items: nested }
      }
    },
    message: (issue) => ({
      message: `must be a condition such as {"path": "status", "is": "eq", "value": "done"}, got ${
        shown(issue.actual)
      }`,
      override: true
    })
  })
}

export const flag = (description: string) => tolerant(Schema.Boolean, "true or false", { type: "boolean", description })

export const names = (description: string) =>
  tolerant(
    Schema.NonEmptyArray(Schema.String.pipe(Schema.pattern(/\S/))),
    "a list of at least one string",
    { type: "array", items: { type: "string" }, minItems: 1, description }
  )

/** A path, or an object of paths by name. Published as a string, since providers refuse unions: JSON text is understood. */
export const selection = (description: string) =>
  Schema.Union(Schema.parseJson(JsonRecord), Schema.String, JsonRecord).annotations({
    jsonSchema: { type: "string", description },
    message: (issue) => ({
      message: `must be a path such as "status", or an object such as {"state": "status"}, got ${shown(issue.actual)}`,
      override: true
    })
  })

export const submission = (description: string) => {
  const Start = Schema.Struct({ tool: Schema.String.pipe(Schema.pattern(/\S/)), args: Schema.optional(JsonRecord) })
  return tolerant(
    Start,
    "an object such as {\"tool\": \"start_job\", \"args\": {}}",
    {
      type: "object",
      description,
      properties: { tool: { type: "string" }, args: { type: "object" } },
      required: ["tool"]
    }
  )
}

export const oneOf = <const Literals extends readonly [string, ...Array<string>]>(
  literals: Literals,
  description: string
) =>
  Schema.Literal(...literals).annotations({
    jsonSchema: { type: "string", enum: literals, description },
    message: (issue) => ({
      message: `must be one of ${literals.join(", ")}, got ${shown(issue.actual)}`,
      override: true
    })
  })

/** The schema as hosts publish it: a root `type: object` and nothing that providers refuse. */
export const published = <A, I>(schema: Schema.Schema<A, I>): JsonObject => {
  const { $schema: _, ...root } = JSONSchema.make(schema)
  const plain: Json = JSON.parse(JSON.stringify(root))
  return isJsonObject(plain) ? plain : {}
}

/** Reads a tool's input. What is wrong comes as one `Refused` that names each field. `null` counts as not given. */
export const read = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })
  return (tool: string, input: unknown): Either.Either<A, Refused> => {
    const deep = tooDeep(input)
    if (deep !== undefined) {
      const message = `${tool}: "${cut(oneLine(deep), 80)}" is nested more than ${maxDepth} levels deep`
      return Either.left(new Refused({ message, field: deep }))
    }
    return Either.mapLeft(decode(withoutNulls(input ?? {})), (error) => {
      const issues = firstOfEach(ParseResult.ArrayFormatter.formatErrorSync(error))
      const field = issues[0]?.path[0]
      return new Refused({
        message: issues.map((issue) => `${tool}: ${describe(issue)}`).join("\n"),
        ...(field === undefined ? {} : { field: String(field) })
      })
    })
  }
}

/** The parameter that a recursive reader could not take. */
const tooDeep = (input: unknown): string | undefined =>
  isNestedWithin(input, maxDepth)
    ? undefined
    : Object.entries(input ?? {}).find(([, value]) => !isNestedWithin(value, maxDepth - 1))?.[0]

/** An optional parameter is at fault twice: for what it must be, and for not being absent. The first says what helps. */
const firstOfEach = (issues: ReadonlyArray<ParseResult.ArrayFormatterIssue>) =>
  issues.filter(({ path }, at) => issues.findIndex((other) => other.path.join(".") === path.join(".")) === at)

const describe = (issue: ParseResult.ArrayFormatterIssue): string => {
  const path = issue.path.map(String).join(".")
  if (path === "") return "the input must be a JSON object of parameters"
  if (issue._tag === "Missing") return `"${path}" is missing`
  return issue._tag === "Unexpected"
    ? `"${cut(oneLine(path), 80)}" is not a parameter of this tool`
    : `"${path}" ${issue.message}`
}

const withoutNulls = (input: unknown): unknown =>
  isJsonObject(input) ? Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)) : input
