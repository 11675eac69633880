import { DEFAULT_INHERITED_ENV_VARS } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { isAbsolute, join } from "node:path"
import type { Environment } from "../HostEnvironment.js"
import { HostEnvironment } from "../HostEnvironment.js"
import { findSelf, selfFacts } from "../SelfEntry.js"
import { expandStrictly } from "./Expansion.js"
import type { Found, FoundServer, FoundUnusable } from "./Found.js"
import { nothing, problem, skipSelf } from "./Found.js"
import type { JsonDocument, Member } from "./JsonFile.js"
import { membersOf, readJsonFile } from "./JsonFile.js"
import type { EntryContext } from "./ServerEntry.js"
import { isFields, readEntry } from "./ServerEntry.js"

const shape = `{ "servers": { "NAME": { "command": "npx", "args": ["-y", "some-server"] } } }`

/**
 * Reads a file of servers for `--mcp-config`: JSON with comments, the servers under `servers`, `mcpServers` or `mcp`, or
 * as a bare map. Variables are expanded; a child gets the MCP SDK's safe list of variables and the entry's own (SPEC
 * "Environment of stdio servers"). A missing or broken file is a problem, a bad entry is unusable; the rest works.
 */
export const readConfigFile = Effect.fn("readConfigFile")(function*(path: string, selfName?: string) {
  const { env, cwd } = yield* HostEnvironment
  const file = isAbsolute(path) ? path : join(cwd, path)
  const read = yield* readJsonFile(file)
  switch (read._tag) {
    case "missing":
      return problem(`The file of --mcp-config does not exist: ${file}. Create it as ${shape}, or correct the path.`)
    case "broken":
      return problem(`The file of --mcp-config is not usable: ${read.reason}. None of its servers is known.`)
    case "document":
      return yield* skipSentinels(
        readServers(read.document, { expand: expandStrictly(env), baseEnv: safeEnvironment(env) }),
        selfName
      )
  }
})

/** Skips the entries that are mcp-sentinel, where an entry's variables do not identify the process. */
export const skipSentinels = Effect.fnUntraced(function*(found: Found, selfName: string | undefined) {
  const candidates = found.servers.flatMap(({ endpoint, name }) =>
    endpoint._tag === "stdio" ? [{ name, command: endpoint.command, args: endpoint.args, env: endpoint.env }] : []
  )
  const facts = yield* selfFacts(candidates, { selfName, envIdentifies: false })
  return skipSelf(found, findSelf(candidates, facts))
})

/** The variables that the MCP SDK lets a stdio server inherit; a value that is a shell function is not one. */
export const safeEnvironment = (env: Environment): Environment =>
  Object.fromEntries(
    DEFAULT_INHERITED_ENV_VARS.flatMap((name) => {
      const value = env[name]
      return value === undefined || value.startsWith("()") ? [] : [[name, value]]
    })
  )

/** Reads the servers of a document that holds them under one of the usual keys, or is a bare map of them. */
export const readServers = (document: JsonDocument, context: EntryContext): Found => {
  const root = membersOf(document, [])
  if (document.root.type !== "object") {
    return problem(`${document.at([])} must hold an object such as ${shape}. None of its servers is known.`)
  }
  const groups = groupsOf(root)
  const parts = groups.flatMap((path) => membersOf(document, path).map((member) => ({ path, member })))
    .filter(({ path, member }) => path.length > 0 || !ignoredInBareMap.has(member.name))
  if (parts.length === 0) {
    return problem(`${document.file} names no server. Write ${shape}.`)
  }
  const found = parts.map(({ path, member }) => toFound(document, path, member, context))
  return {
    ...nothing,
    servers: found.flatMap(({ server }) => server === undefined ? [] : [server]),
    unusable: found.flatMap(({ unusable }) => unusable === undefined ? [] : [unusable]),
    problems: [...misplaced(document, root), ...found.flatMap(({ problem }) => problem === undefined ? [] : [problem])]
  }
}

const keys = ["servers", "mcpServers", "mcp"]
const ignoredInBareMap = new Set(["$schema", "inputs", ...keys])

const looksLikeEntry = (value: unknown): boolean =>
  isFields(value) &&
  ["command", "url", "type"].some((field) => typeof value[field] === "string" || Array.isArray(value[field]))

const groupsOf = (root: ReadonlyArray<Member>): ReadonlyArray<ReadonlyArray<string>> => {
  const named = root.filter(({ name, value }) => keys.includes(name) && isFields(value) && !looksLikeEntry(value))
  return named.length > 0 ? named.map(({ name }) => [name]) : [[]]
}

/** A known key that holds something else than a map would otherwise be a silent empty list. */
const misplaced = (document: JsonDocument, root: ReadonlyArray<Member>): ReadonlyArray<string> =>
  root.filter(({ name, value }) => keys.includes(name) && !isFields(value))
    .map(({ name }) => `${document.at([name])}: "${name}" must be an object of servers, such as ${shape}.`)

interface Sorted {
  readonly server?: FoundServer
  readonly unusable?: FoundUnusable
  readonly problem?: string
}

const toFound = (
  document: JsonDocument,
  group: ReadonlyArray<string>,
  { at, name, repeated, value }: Member,
  context: EntryContext
): Sorted => {
  const path = [...group, name]
  const note = repeated
    ? { problem: `${at}: the name ${JSON.stringify(name)} is there twice; the last one counts.` }
    : {}
  return Either.match(readEntry(name, value, context), {
    onRight: (server): Sorted => ({ server: { ...server, source: at }, ...note }),
    onLeft: (left): Sorted => ({
      unusable: left._tag === "off"
        ? { name, kind: "disabled", reason: `it is switched off at ${at}`, source: at }
        : { name, kind: "broken", reason: `${document.at([...path, ...left.field])}: ${left.reason}`, source: at },
      ...note
    })
  })
}
