import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import type { Node, ParseError } from "jsonc-parser"
import { findNodeAtLocation, getNodeValue, parseTree, printParseErrorCode } from "jsonc-parser"

/** A JSON document with comments and trailing commas, and where everything in it stands. */
export interface JsonDocument {
  readonly file: string
  readonly root: Node
  /** `file:line` of the deepest part of the path that exists */
  readonly at: (path: ReadonlyArray<string>) => string
  /** `file:line` of an offset */
  readonly where: (offset: number) => string
}

export type JsonFile =
  | { readonly _tag: "document"; readonly document: JsonDocument }
  | { readonly _tag: "missing" }
  /** `reason` says where and what, without any of the content */
  | { readonly _tag: "broken"; readonly reason: string }

const broken = (reason: string): JsonFile => ({ _tag: "broken", reason })

/** Reads and parses a file; never fails, since a configuration is allowed to be missing or broken. */
export const readJsonFile = Effect.fnUntraced(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  const content = yield* Effect.either(fs.readFileString(file))
  if (content._tag === "Right") return parseJson(file, content.right)
  const error = content.left
  if (error._tag === "SystemError" && error.reason === "NotFound") return { _tag: "missing" } satisfies JsonFile
  const why = error._tag === "SystemError" ? error.reason : error.message
  return broken(`${file} could not be read (${why})`)
})

/** Parses JSON with comments and trailing commas. An empty text is a broken one. */
export const parseJson = (file: string, content: string): JsonFile => {
  const text = content.replace(/^\uFEFF/, "")
  const errors: Array<ParseError> = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const first = errors[0]
  if (root === undefined || first !== undefined) {
    const where = `${file}:${lineAt(text, first?.offset ?? 0)}`
    return broken(
      `${where} is not valid JSON (${first === undefined ? "it is empty" : printParseErrorCode(first.error)})`
    )
  }
  const where = (offset: number) => `${file}:${lineAt(text, offset)}`
  return { _tag: "document", document: { file, root, where, at: (path) => where(nearest(root, path).offset) } }
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length

const nearest = (root: Node, path: ReadonlyArray<string>): Node => {
  for (let length = path.length; length > 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length))
    if (node !== undefined) return node.parent?.type === "property" ? node.parent : node
  }
  return root
}

/** One member of an object. */
export interface Member {
  readonly name: string
  readonly value: unknown
  /** `file:line` */
  readonly at: string
  readonly repeated: boolean
}

/**
 * The members of the object at a path, in order, a repeated name once with its last value (as JSON readers do); empty
 * when there is no object. Names such as `__proto__` are names like any other.
 */
export const membersOf = (document: JsonDocument, path: ReadonlyArray<string>): ReadonlyArray<Member> => {
  const node = path.length === 0 ? document.root : findNodeAtLocation(document.root, [...path])
  if (node?.type !== "object") return []
  const members = new Map<string, Member>()
  for (const property of node.children ?? []) {
    const [key, value] = property.children ?? []
    if (key === undefined || value === undefined) continue
    const name = String(key.value)
    members.set(name, {
      name,
      value: getNodeValue(value),
      at: document.where(property.offset),
      repeated: members.has(name)
    })
  }
  return [...members.values()]
}
