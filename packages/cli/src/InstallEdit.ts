import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { FormattingOptions } from "jsonc-parser"
import { applyEdits, modify, parse, type ParseError } from "jsonc-parser"
import { parse as parseToml } from "smol-toml"

/** One place of a text that is replaced; undone by the reverse. Offsets count UTF-16 units. */
export interface TextEdit {
  readonly at: number
  readonly removed: string
  readonly inserted: string
}

export const applyEdit = (text: string, { at, inserted, removed }: TextEdit): string =>
  text.slice(0, at) + inserted + text.slice(at + removed.length)

/** What brings back the text before the edit, also when other places have changed since; undefined: it is not there. */
export const reverse = (text: string, { at, inserted, removed }: TextEdit): TextEdit | undefined => {
  const there = text.startsWith(inserted, at)
  const first = there ? at : text.indexOf(inserted)
  if (first === -1 || (!there && text.includes(inserted, first + 1))) return undefined
  return { at: first, removed: inserted, inserted: removed }
}

type Value = Readonly<Record<string, unknown>>

const byteOrderMark = "\uFEFF"

const formatting = (text: string): FormattingOptions => {
  const indent = /^([ \t]+)\S/m.exec(text)?.[1] ?? "  "
  return { insertSpaces: !indent.startsWith("\t"), tabSize: indent.length, eol: text.includes("\r\n") ? "\r\n" : "\n" }
}

const parsed = (text: string): Either.Either<unknown, string> => {
  const errors: Array<ParseError> = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true })
  return errors.length > 0 ? Either.left("it is not valid JSON") : Either.right(value)
}

/** Leaves out what an edit takes away only to put it back. */
const narrowed = ({ at, inserted, removed }: TextEdit): TextEdit => {
  const shorter = Math.min(removed.length, inserted.length)
  let start = 0
  while (start < shorter && removed[start] === inserted[start]) start++
  let end = 0
  while (end < shorter - start && removed.at(-1 - end) === inserted.at(-1 - end)) end++
  return {
    at: at + start,
    removed: removed.slice(start, removed.length - end),
    inserted: inserted.slice(start, inserted.length - end)
  }
}

/** Takes away nothing but white space and brackets: no one else's words are moved, shown or kept. */
const isClean = ({ removed }: TextEdit): boolean => /^[\s{}[\],]*$/.test(removed)

interface Attempt {
  /** indented as the file is, not in one line */
  readonly formatted: boolean
  /** as the first member: behind a trailing comma the last place is not one */
  readonly first: boolean
}

const attempts: ReadonlyArray<Attempt> = [
  { formatted: true, first: false },
  { formatted: true, first: true },
  { formatted: false, first: false },
  { formatted: false, first: true }
]

const changeJson = (
  text: string,
  path: ReadonlyArray<string>,
  value: Value | undefined,
  { first, formatted }: Attempt
): Option.Option<TextEdit> => {
  const mark = text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
  const body = text.slice(mark)
  const changes = modify(body, [...path], value, {
    ...(formatted ? { formattingOptions: formatting(body) } : {}),
    ...(first ? { getInsertionIndex: () => 0 } : {})
  })
  const [change] = changes
  if (change === undefined || changes.length > 1 || Either.isLeft(parsed(applyEdits(body, changes)))) {
    return Option.none()
  }
  return Option.some(narrowed({
    at: change.offset + mark,
    removed: body.slice(change.offset, change.offset + change.length),
    inserted: change.content
  }))
}

/** Adds a member to a JSON text with comments, everything else staying as it is. An empty text becomes an object. */
export const addToJson = (text: string, path: ReadonlyArray<string>, value: Value): Either.Either<TextEdit, string> => {
  if (text.trim() === "") {
    const whole = path.reduceRight<Value>((inner, key) => ({ [key]: inner }), value)
    return Either.right({ at: 0, removed: text, inserted: `${JSON.stringify(whole, null, 2)}\n` })
  }
  return Either.flatMap(parsed(text.replace(byteOrderMark, "")), () =>
    Either.fromOption(
      Option.filter(
        Option.firstSomeOf(attempts.map((attempt) => Option.filter(changeJson(text, path, value, attempt), isClean))),
        (edit) => jsonAt(applyEdit(text, edit), path) !== undefined
      ),
      () => `it cannot be given ${path.join(".")} in one place`
    ))
}

export const removeFromJson = (text: string, path: ReadonlyArray<string>): Either.Either<TextEdit, string> =>
  Either.flatMap(parsed(text.replace(byteOrderMark, "")), () =>
    Either.fromOption(
      changeJson(text, path, undefined, { formatted: false, first: false }),
      () => `${path.join(".")} cannot be taken out of it`
    ))

/** The value at a path of a JSON text with comments. */
export const jsonAt = (text: string, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined,
    parse(text.replace(byteOrderMark, ""), [], { allowTrailingComma: true })
  )

const begin = "# >>> mcp-sentinel: `mcp-sentinel uninstall codex` removes these lines >>>"
const end = "# <<< mcp-sentinel <<<"

/** Appends a block of lines to a TOML text, between two marks; a TOML table's header needs no context. */
export const addToToml = (text: string, lines: ReadonlyArray<string>): Either.Either<TextEdit, string> => {
  const eol = text.includes("\r\n") ? "\r\n" : "\n"
  const gap = text === "" ? "" : text.endsWith("\n") ? eol : eol + eol
  const inserted = gap + [begin, ...lines, end, ""].join(eol)
  const edit: TextEdit = { at: text.length, removed: "", inserted }
  return Either.map(tomlOf(applyEdit(text, edit)), () => edit)
}

export const removeFromToml = (text: string): TextEdit | undefined => {
  const match = new RegExp(`\\r?\\n?${escaped(begin)}[^]*?${escaped(end)}\\r?\\n?`).exec(text)
  return match === null ? undefined : { at: match.index, removed: match[0], inserted: "" }
}

const escaped = (text: string): string => text.replace(/[.+*?^${}()|[\]\\]/g, "\\$&")

/** Parses TOML; Left: line, column and reason, without any of the content. */
export const tomlOf = (text: string): Either.Either<Value, string> =>
  Either.try({
    try: () => parseToml(text.replace(byteOrderMark, "")),
    catch: (error) =>
      error instanceof Error ? (error.message.split("\n")[0] ?? "it is not valid TOML") : "it is not valid TOML"
  })
