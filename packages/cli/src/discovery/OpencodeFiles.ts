import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { getNodeValue } from "jsonc-parser"
import { dirname, isAbsolute, join, resolve } from "node:path"
import type { Environment } from "../HostEnvironment.js"
import { HostEnvironment } from "../HostEnvironment.js"
import type { JsonFile } from "./JsonFile.js"
import { parseJson, readJsonFile } from "./JsonFile.js"
import { isFields } from "./ServerEntry.js"

type Fields = Readonly<Record<string, unknown>>

const fileNames = ["config.json", "opencode.json", "opencode.jsonc"]

/**
 * The `mcp` block as the configuration files have it, weakest first: global, OPENCODE_CONFIG, the project's files from
 * the repository's root down to the session's folder, `.opencode` folders, OPENCODE_CONFIG_DIR, OPENCODE_CONFIG_CONTENT.
 * `{env:X}` and `{file:path}` are replaced as opencode replaces them. What is missing or broken is left out.
 */
export const readOpencodeFiles = Effect.gen(function*() {
  const { cwd, env, home } = yield* HostEnvironment
  const folders = yield* projectFolders(cwd)
  const global = join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "opencode")
  const named = env.OPENCODE_CONFIG
  const files = [
    ...inFolder(global),
    ...(named === undefined ? [] : [resolve(cwd, named)]),
    ...folders.flatMap((folder) => inFolder(folder).slice(1)),
    ...[join(home, ".opencode"), ...folders.map((folder) => join(folder, ".opencode"))].flatMap((folder) =>
      inFolder(folder).slice(1)
    ),
    ...(env.OPENCODE_CONFIG_DIR === undefined ? [] : inFolder(env.OPENCODE_CONFIG_DIR).slice(1))
  ]
  const read = yield* Effect.forEach(files, (file) => Effect.flatMap(readJsonFile(file), mcpBlock(file, env, home)))
  const content = env.OPENCODE_CONFIG_CONTENT
  const inline = content === undefined
    ? {}
    : yield* mcpBlock(join(cwd, "OPENCODE_CONFIG_CONTENT"), env, home)(parseJson("OPENCODE_CONFIG_CONTENT", content))
  return [...read, inline].reduce(merge, {})
})

const inFolder = (folder: string) => fileNames.map((name) => join(folder, name))

/** From the repository's root (or the top of the file system) down to the session's folder. */
const projectFolders = Effect.fnUntraced(function*(cwd: string) {
  const fs = yield* FileSystem.FileSystem
  const folders = [cwd]
  for (let folder = cwd; dirname(folder) !== folder; folder = dirname(folder)) {
    if (yield* Effect.orElseSucceed(fs.exists(join(folder, ".git")), () => false)) break
    folders.unshift(dirname(folder))
  }
  return folders
})

const mcpBlock = (file: string, env: Environment, home: string) => (read: JsonFile) =>
  Effect.gen(function*() {
    if (read._tag !== "document") return {}
    const config: unknown = getNodeValue(read.document.root)
    const block = isFields(config) ? config.mcp : undefined
    const substituted = yield* substitute(block, file, env, home)
    return isFields(substituted) ? substituted : {}
  })

const merge = (weaker: Fields, stronger: Fields): Fields =>
  Object.fromEntries(
    [...new Set([...Object.keys(weaker), ...Object.keys(stronger)])].map((key) => {
      const [one, other] = [weaker[key], stronger[key]]
      return [key, isFields(one) && isFields(other) ? merge(one, other) : Object.hasOwn(stronger, key) ? other : one]
    })
  )

const substitute = (
  value: unknown,
  file: string,
  env: Environment,
  home: string
): Effect.Effect<unknown, never, FileSystem.FileSystem> => {
  if (typeof value === "string") return substituteText(value, file, env, home)
  if (Array.isArray(value)) return Effect.forEach(value, (item) => substitute(item, file, env, home))
  if (!isFields(value)) return Effect.succeed(value)
  return Effect.map(
    Effect.forEach(
      Object.entries(value),
      ([key, item]) => Effect.map(substitute(item, file, env, home), (replaced) => [key, replaced] as const)
    ),
    (pairs) => Object.fromEntries(pairs)
  )
}

const substituteText = Effect.fnUntraced(function*(text: string, file: string, env: Environment, home: string) {
  const fs = yield* FileSystem.FileSystem
  const withEnv = text.replace(/\{env:([^}]+)\}/g, (_, name: string) => env[name] ?? "")
  const parts = withEnv.split(/\{file:([^}]+)\}/)
  const replaced = yield* Effect.forEach(parts, (part, index) => {
    if (index % 2 === 0) return Effect.succeed(part)
    const path = part.startsWith("~/") ? join(home, part.slice(2)) : isAbsolute(part) ? part : join(dirname(file), part)
    return Effect.map(Effect.orElseSucceed(fs.readFileString(path), () => ""), (content) => content.trim())
  })
  return replaced.join("")
})
