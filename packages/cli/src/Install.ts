import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { dirname } from "node:path"
import type { TextEdit } from "./InstallEdit.js"
import { applyEdit, reverse } from "./InstallEdit.js"
import type { InstallRecord } from "./InstallRecord.js"
import { readRecords, writeRecord } from "./InstallRecord.js"
import type { Installable, Scope } from "./InstallTarget.js"
import { targetOf } from "./InstallTarget.js"

/** The harness's file could not be changed; the message says what to do by hand. */
export class InstallFailure extends Schema.TaggedError<InstallFailure>()("InstallFailure", {
  file: Schema.String,
  message: Schema.String
}) {}

/** A change that is known in full before anything is written. */
export interface Plan {
  readonly harness: Installable
  readonly file: string
  /** the file's text; undefined: there is no file */
  readonly before: string | undefined
  /** undefined: nothing has to be changed */
  readonly edit: TextEdit | undefined
  /** the file goes, since install made it and nobody wrote into it */
  readonly deletes: boolean
  readonly undoes: boolean
  readonly notes: ReadonlyArray<string>
}

const supported = Effect.fnUntraced(function*(harness: Installable, scope: Scope) {
  const target = yield* targetOf(harness, scope)
  if (harness === "codex" && scope === "project") {
    return yield* failure(
      target.file,
      "for Codex there is --scope user only, since it reads a project's file in trusted folders alone."
    )
  }
  return target
})

const failure = (file: string, why: string) => new InstallFailure({ file, message: `${file} was not changed: ${why}` })

/** What `install` would change. Fails when the file is not what its harness could read. */
export const planInstall = Effect.fn("planInstall")(function*(harness: Installable, scope: Scope) {
  const target = yield* supported(harness, scope)
  const before = yield* read(target.file)
  const plan = { harness, file: target.file, before, deletes: false, undoes: false }
  if (before !== undefined && target.has(before)) {
    return {
      ...plan,
      edit: undefined,
      notes: [`It is installed already. \`mcp-sentinel uninstall ${harness}\` takes it out.`]
    }
  }
  const edit = target.add(before ?? "")
  if (Either.isLeft(edit)) return yield* failure(target.file, `${edit.left}. Correct the file, and install again.`)
  return { ...plan, edit: edit.right, notes: target.notes } satisfies Plan
})

/** What `uninstall` would change: the exact reverse of install, else the removal of the entry. */
export const planUninstall = Effect.fn("planUninstall")(function*(harness: Installable, scope: Scope) {
  const target = yield* supported(harness, scope)
  const before = yield* read(target.file)
  const plan = { harness, file: target.file, before, undoes: true }
  if (before === undefined || !target.has(before)) {
    return { ...plan, edit: undefined, deletes: false, notes: ["It is not installed."] }
  }
  const record = (yield* readRecords).find(({ file }) => file === target.file)
  const edit = record === undefined ? undefined : reverse(before, record)
  if (edit !== undefined) {
    return { ...plan, edit, deletes: record?.created === true && applyEdit(before, edit) === "", notes: [] }
  }
  const removal = target.remove(before)
  if (Either.isLeft(removal)) {
    return yield* failure(target.file, `${removal.left}. Take the entry mcp-sentinel out by hand.`)
  }
  return { ...plan, edit: removal.right, deletes: false, notes: [] } satisfies Plan
})

/** Writes a plan. Fails when the file has changed since the plan was made; the file is replaced as a whole. */
export const apply = Effect.fn("apply")(function*(plan: Plan) {
  const { before, edit, file } = plan
  if (edit === undefined) return
  if ((yield* read(file)) !== before) return yield* failure(file, "somebody else changed it meanwhile. Try again.")
  yield* (plan.deletes ? remove(file) : replace(file, applyEdit(before ?? "", edit))).pipe(
    Effect.zipRight(writeRecord(file, plan.undoes ? undefined : recordOf(plan, edit))),
    Effect.mapError((error) => failure(file, error.message))
  )
})

const recordOf = ({ before, file, harness }: Plan, edit: TextEdit): InstallRecord => ({
  harness,
  file,
  created: before === undefined,
  ...edit
})

/** The text with its byte order mark; what is not UTF-8 could not be written back. */
const read = Effect.fnUntraced(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* Effect.orElseSucceed(fs.exists(file), () => false))) return undefined
  const bytes = yield* Effect.mapError(fs.readFile(file), (error) => failure(file, error.message))
  return yield* Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
    catch: () => failure(file, "it is not a UTF-8 text.")
  })
})

const remove = (file: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.remove(file))

/** A reader never sees half a file; a link stays a link, and the mode stays. */
const replace = Effect.fnUntraced(function*(file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(dirname(file), { recursive: true })
  const real = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
  const mode = yield* Effect.orElseSucceed(Effect.map(fs.stat(real), (info) => info.mode & 0o777), () => 0o600)
  const draft = `${real}.mcp-sentinel-${globalThis.crypto.randomUUID().slice(0, 8)}`
  yield* fs.writeFileString(draft, text, { mode }).pipe(
    Effect.zipRight(fs.rename(draft, real)),
    Effect.onError(() => Effect.ignore(fs.remove(draft)))
  )
})

const marked = (mark: string, text: string): ReadonlyArray<string> =>
  text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/).map((line) => `${mark} ${line}`)

/** The plan for a person: file, line, and what goes and comes; nothing else of the file. */
export const describePlan = ({ before, deletes, edit, file, notes }: Plan): string => {
  if (edit === undefined) return [`${file}: nothing to do.`, ...notes].join("\n")
  const line = (before ?? "").slice(0, edit.at).split("\n").length
  const what = before === undefined ? "new file" : deletes ? "file is deleted" : `line ${line}`
  return [`${file} (${what})`, ...marked("-", edit.removed), ...marked("+", edit.inserted), ...notes].join("\n")
}
