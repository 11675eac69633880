import * as Either from "effect/Either"
import { Refused } from "./Errors.js"
import { isJsonObject, type Json, type JsonObject } from "./Json.js"
import * as JsonPath from "./JsonPath.js"

/** Which part of a value texts show: one path, or names with a path each. */
export type Selection =
  | { readonly _tag: "One"; readonly path: JsonPath.JsonPath }
  | { readonly _tag: "Named"; readonly paths: ReadonlyArray<readonly [name: string, path: JsonPath.JsonPath]> }

const parse = (text: Json, at: string): Either.Either<JsonPath.JsonPath, Refused> =>
  typeof text === "string"
    ? Either.mapLeft(JsonPath.parse(text), ({ column, message }) =>
      new Refused({ message: `${at}: ${message} (column ${column})`, field: "select" }))
    : Either.left(new Refused({ message: `${at}: a path is a string such as "status"`, field: "select" }))

/** Checks a `select` parameter: a path, or an object of paths. */
export const compile = (select: string | JsonObject): Either.Either<Selection, Refused> =>
  typeof select === "string"
    ? Either.map(parse(select, "select"), (path): Selection => ({ _tag: "One", path }))
    : Either.map(
      Either.all(
        Object.entries(select).map(([name, path]) =>
          Either.map(parse(path, `select.${name}`), (path) => [name, path] as const)
        )
      ),
      (paths): Selection => ({ _tag: "Named", paths })
    )

const follow = (path: JsonPath.JsonPath, json: Json): Json => {
  const found = JsonPath.resolve(path, json)
  return found._tag === "Found" ? found.value : `(${found.reason})`
}

/** The selected part; a path that leads nowhere says so in its place. */
export const select = (selection: Selection, json: Json): Json =>
  selection._tag === "One"
    ? follow(selection.path, json)
    : Object.fromEntries(selection.paths.map(([name, path]) => [name, follow(path, json)]))

/** The path of `{"$from": "job.id"}`, which stands for a value from the result of `start`. */
const referenceOf = (json: Json): string | undefined =>
  isJsonObject(json) && Object.keys(json).length === 1 && typeof json["$from"] === "string" ? json["$from"] : undefined

/** Puts values from the result of `start` in the place of their references; Left: why one has none. */
export const fill = (json: Json, result: Json): Either.Either<Json, string> => {
  const reference = referenceOf(json)
  if (reference !== undefined) {
    return Either.flatMap(
      Either.mapLeft(JsonPath.parse(reference), ({ message }) => message),
      (path): Either.Either<Json, string> => {
        const found = JsonPath.resolve(path, result)
        return found._tag === "Found" ? Either.right(found.value) : Either.left(found.reason)
      }
    )
  }
  if (Array.isArray(json)) return Either.all(json.map((item) => fill(item, result)))
  return isJsonObject(json) ? fillObject(json, result) : Either.right(json)
}

export const fillObject = (json: JsonObject, result: Json): Either.Either<JsonObject, string> =>
  Either.map(
    Either.all(
      Object.entries(json).map(([key, value]) => Either.map(fill(value, result), (filled) => [key, filled] as const))
    ),
    (entries) => Object.fromEntries(entries)
  )

const nothing = (): void => {}

/** Checks the paths of all references in arguments. */
export const checkReferences = (json: Json): Either.Either<void, Refused> => {
  const reference = referenceOf(json)
  if (reference !== undefined) return Either.map(parse(reference, "args: $from"), nothing)
  if (Array.isArray(json)) return Either.map(Either.all(json.map(checkReferences)), nothing)
  return isJsonObject(json) ? Either.map(Either.all(Object.values(json).map(checkReferences)), nothing) : Either.void
}
