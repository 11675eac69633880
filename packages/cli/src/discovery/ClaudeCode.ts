import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { join, resolve } from "node:path"
import { unguarded, without } from "../HostEnvironment.js"
import type { Candidate } from "../SelfEntry.js"
import { findSelf, selfFacts } from "../SelfEntry.js"
import type { ClaudeSession } from "./ClaudeSession.js"
import { above, claudeSession, projectKey, valuesOf } from "./ClaudeSession.js"
import type { ClaudeSettings } from "./ClaudeSettings.js"
import { managedFolder, readSettings } from "./ClaudeSettings.js"
import { expandLeniently } from "./Expansion.js"
import type { Found, FoundServer, FoundUnusable } from "./Found.js"
import { skipSelf } from "./Found.js"
import type { JsonFile } from "./JsonFile.js"
import { membersOf, parseJson, readJsonFile } from "./JsonFile.js"
import type { EntryContext } from "./ServerEntry.js"
import { isFields, readEntry } from "./ServerEntry.js"

type Scope = "user" | "project" | "local" | "managed" | "command line"

interface ScopedEntry {
  readonly name: string
  readonly value: unknown
  readonly scope: Scope
  readonly at: string
  readonly fieldAt: (field: ReadonlyArray<string>) => string
}

/**
 * The servers that Claude Code has in this folder, read from its files: its own commands would start every server.
 * Scopes as Claude Code merges them (user, project, local, then the command line's `--mcp-config`; a managed file stands
 * alone), with its approval lists, its expansion of variables and its deny rules.
 */
export const readClaudeCode = Effect.fn("readClaudeCode")(function*(selfName: string | undefined) {
  const session = yield* claudeSession
  const { entries, problems } = yield* collect(session)
  const settings = yield* readSettings(session)
  const merged = [...new Map(entries.map((entry) => [entry.name, entry])).values()]
  const candidates = merged.flatMap(toCandidate)
  const selves = findSelf(candidates, yield* selfFacts(candidates, { selfName, envIdentifies: false }))
  const own = candidates.filter(({ name }) => selves.has(name))
  const context = contextOf(session.env, own)
  const results = merged.map((entry) => toServer(entry, settings, context))
  const found: Found = {
    servers: results.flatMap((result) => Either.isRight(result) ? [result.right] : []),
    unusable: results.flatMap((result) => Either.isLeft(result) ? [result.left] : []),
    problems: [...problems, ...settings.problems],
    denies: settings.denies,
    ownCallTimeout: ownTimeout(merged.filter(({ name }) => selves.get(name)?.includes("itself")))
  }
  return skipSelf(found, selves)
})

const contextOf = (env: ClaudeSession["env"], own: ReadonlyArray<Candidate>): EntryContext => {
  const milliseconds = (name: string) => {
    const value = Number(env[name])
    return value > 0 ? value : undefined
  }
  return {
    expand: expandLeniently(env),
    baseEnv: unguarded(without(env, own.flatMap((candidate) => Object.keys(candidate.env)))),
    callTimeout: milliseconds("MCP_TOOL_TIMEOUT"),
    startupTimeout: milliseconds("MCP_TIMEOUT")
  }
}

const ownTimeout = ([own]: ReadonlyArray<ScopedEntry>): number | undefined =>
  isFields(own?.value) && typeof own.value.timeout === "number" ? own.value.timeout : undefined

const toCandidate = ({ name, value }: ScopedEntry): ReadonlyArray<Candidate> =>
  isFields(value) && typeof value.command === "string"
    ? [{
      name,
      command: value.command,
      args: Array.isArray(value.args) ? value.args.map(String) : [],
      env: isFields(value.env)
        ? Object.fromEntries(Object.entries(value.env).map(([key, text]) => [key, String(text)]))
        : {}
    }]
    : []

interface Collected {
  readonly entries: ReadonlyArray<ScopedEntry>
  readonly problems: ReadonlyArray<string>
}

const entriesIn = (read: JsonFile, path: ReadonlyArray<string>, scope: Scope): Collected => {
  if (read._tag === "missing") return { entries: [], problems: [] }
  if (read._tag === "broken") {
    return { entries: [], problems: [`${read.reason}. Claude Code's servers from it are not known; correct the file.`] }
  }
  const { document } = read
  return {
    entries: membersOf(document, path).map(({ at, name, value }) => ({
      name,
      value,
      scope,
      at,
      fieldAt: (field) => document.at([...path, name, ...field])
    })),
    problems: []
  }
}

const joined = (parts: ReadonlyArray<Collected>): Collected => ({
  entries: parts.flatMap(({ entries }) => entries),
  problems: parts.flatMap(({ problems }) => problems)
})

const collect = Effect.fnUntraced(function*(session: ClaudeSession) {
  const managed = yield* readJsonFile(join(managedFolder(session.platform), "managed-mcp.json"))
  if (managed._tag !== "missing") return entriesIn(managed, ["mcpServers"], "managed")
  const line = yield* commandLineServers(session)
  if (session.argv.includes("--strict-mcp-config")) return line
  const state = yield* readJsonFile(session.stateFile)
  const project = yield* Effect.forEach(
    above(session.project),
    (folder) =>
      Effect.map(readJsonFile(join(folder, ".mcp.json")), (read) => entriesIn(read, ["mcpServers"], "project"))
  )
  return joined([
    entriesIn(state, ["mcpServers"], "user"),
    ...project,
    ...(state._tag === "document"
      ? [entriesIn(state, ["projects", yield* projectKey(session, state.document), "mcpServers"], "local")]
      : []),
    line
  ])
})

/** `--mcp-config` takes any number of files or JSON texts. */
const commandLineServers = Effect.fnUntraced(function*({ argv, project }: ClaudeSession) {
  const parts = yield* Effect.forEach(valuesOf(argv, ["--mcp-config"]), (value) =>
    Effect.map(
      value.trimStart().startsWith("{")
        ? Effect.succeed(parseJson("--mcp-config", value))
        : readJsonFile(resolve(project, value)),
      (read) => entriesIn(read, ["mcpServers"], "command line")
    ))
  return joined(parts)
})

const toServer = (
  entry: ScopedEntry,
  settings: ClaudeSettings,
  context: EntryContext
): Either.Either<FoundServer, FoundUnusable> => {
  const { at, name, scope } = entry
  const unusable = (kind: FoundUnusable["kind"], reason: string) => Either.left({ name, kind, reason, source: at })
  const off = settings.switchedOff(name, scope)
  if (off !== undefined) return unusable("disabled", off)
  const read = readEntry(name, entry.value, context)
  if (Either.isRight(read)) return Either.right({ ...read.right, source: `${at} (${scope} scope)` })
  return read.left._tag === "off"
    ? unusable("disabled", `it is switched off at ${at}`)
    : unusable("broken", `${entry.fieldAt(read.left.field)}: ${read.left.reason}`)
}
