import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { dirname, join } from "node:path"
import { HostEnvironment } from "./HostEnvironment.js"

/** What install changed, kept so that uninstall brings the file back byte for byte. */
const InstallRecord = Schema.Struct({
  harness: Schema.String,
  file: Schema.String,
  /** the file was not there before */
  created: Schema.Boolean,
  at: Schema.Number,
  removed: Schema.String,
  inserted: Schema.String
})
export type InstallRecord = typeof InstallRecord.Type

const Records = Schema.parseJson(Schema.Array(InstallRecord), { space: 2 })

const recordFile = Effect.map(HostEnvironment, ({ env, home, platform }) =>
  join(
    env.XDG_STATE_HOME ?? (platform === "win32" ? env.LOCALAPPDATA ?? home : join(home, ".local", "state")),
    "mcp-sentinel",
    "installed.json"
  ))

/** All that is installed; a record that cannot be read counts as none, uninstall then looks for the entry itself. */
export const readRecords = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readFileString(yield* recordFile).pipe(
    Effect.flatMap(Schema.decode(Records)),
    Effect.orElseSucceed((): ReadonlyArray<InstallRecord> => [])
  )
})

/** Replaces the record of a file; without a record it is forgotten. */
export const writeRecord = Effect.fnUntraced(function*(file: string, record: InstallRecord | undefined) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* recordFile
  const others = (yield* readRecords).filter((known) => known.file !== file)
  yield* fs.makeDirectory(dirname(path), { recursive: true })
  const text = yield* Schema.encode(Records)(record === undefined ? others : [...others, record])
  yield* fs.writeFileString(path, text, { mode: 0o600 })
})
