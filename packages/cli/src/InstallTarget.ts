import * as FileSystem from "@effect/platform/FileSystem"
import { version } from "@gcszhn/mcp-sentinel-core/version"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { join } from "node:path"
import { codexSession, forwardedVariables } from "./discovery/Codex.js"
import { HostEnvironment, idVariable } from "./HostEnvironment.js"
import type { TextEdit } from "./InstallEdit.js"
import { addToJson, addToToml, jsonAt, removeFromJson, removeFromToml, tomlOf } from "./InstallEdit.js"

export const installable = ["codex", "opencode", "claude-code"] as const
export type Installable = (typeof installable)[number]

export const scopes = ["user", "project"] as const
export type Scope = (typeof scopes)[number]

/** The name of the entry, the same in every harness: agents see `mcp__mcp-sentinel__mcp_sentinel_poll` and the like. */
const entryName = "mcp-sentinel"

/** How a harness's file is changed; both are pure. Left: why it is not, as a clause. */
export interface Target {
  readonly file: string
  readonly has: (text: string) => boolean
  readonly add: (text: string) => Either.Either<TextEdit, string>
  readonly remove: (text: string) => Either.Either<TextEdit, string>
  /** what a person should know or do after it, as sentences */
  readonly notes: ReadonlyArray<string>
}

/** s; attach returns by itself before it, so that an agent waits an hour per call */
const codexToolTimeout = 3_600

/** s; npx may have to fetch the package at the first start */
const codexStartTimeout = 60

export const targetOf = (harness: Installable, scope: Scope) => {
  switch (harness) {
    case "codex":
      return codexTarget
    case "opencode":
      return opencodeTarget(scope)
    case "claude-code":
      return claudeTarget(scope)
  }
}

/** How this program is started again: through npx where it was, since such a folder does not stay. */
const launch = Effect.fnUntraced(function*(harness: Installable) {
  const { argv } = yield* HostEnvironment
  const fs = yield* FileSystem.FileSystem
  const [node = "node", script = ""] = argv
  const real = yield* Effect.orElseSucceed(fs.realPath(script), () => script)
  const passing = /[\\/](_npx|dlx-[^\\/]*|dlx|bunx-[^\\/]*)[\\/]/.test(real)
  const start = passing ? ["npx", "-y", `@gcszhn/mcp-sentinel-cli@${version}`] : [node, real]
  return [...start, "mcp", "--harness", harness]
})

const newId = (): string => globalThis.crypto.randomUUID()

const codexTarget = Effect.gen(function*() {
  const { home } = yield* codexSession
  const [command = "", ...args] = yield* launch("codex")
  const variables = yield* forwardedVariables
  const forwarded = ["CODEX_HOME", ...Either.getOrElse(variables, () => [])]
  const text = JSON.stringify
  const lines = [
    `[mcp_servers.${entryName}]`,
    `command = ${text(command)}`,
    `args = ${text(args)}`,
    `env = { ${idVariable} = ${text(newId())} }`,
    `# Codex hides variables from its servers; these are the ones that its servers need, and its home for \`codex queue\``,
    `env_vars = ${text([...new Set(forwarded)])}`,
    `# without this line \`codex exec\` refuses the tools that are not read-only`,
    `default_tools_approval_mode = "approve"`,
    `# s; the longest that mcp_sentinel_attach may block`,
    `tool_timeout_sec = ${codexToolTimeout}`,
    `startup_timeout_sec = ${codexStartTimeout}`
  ]
  const target: Target = {
    file: join(home, "config.toml"),
    has: (toml) => Either.isRight(tomlOf(toml)) && hasTable(Either.getOrThrow(tomlOf(toml))),
    add: (toml) => addToToml(toml, lines),
    remove: (toml) => Either.fromNullable(removeFromToml(toml), () => "the lines that install wrote are not there"),
    notes: [
      "New Codex sessions have it. Its tools are approved: what they may call is bounded by enabled_tools and disabled_tools of each server, and by --deny.",
      ...(Either.isLeft(variables) ? [`The variables of your servers are not known: ${variables.left}`] : [])
    ]
  }
  return target
})

const hasTable = (toml: Readonly<Record<string, unknown>>): boolean => {
  const servers = toml.mcp_servers
  return typeof servers === "object" && servers !== null && Object.hasOwn(servers, entryName)
}

const jsonTarget = (
  file: string,
  path: ReadonlyArray<string>,
  value: Readonly<Record<string, unknown>>,
  notes: ReadonlyArray<string>
): Target => ({
  file,
  has: (text) => jsonAt(text, path) !== undefined,
  add: (text) => addToJson(text, path, value),
  remove: (text) => removeFromJson(text, path),
  notes
})

const opencodeTarget = Effect.fnUntraced(function*(scope: Scope) {
  const { cwd, env, home } = yield* HostEnvironment
  const fs = yield* FileSystem.FileSystem
  const folder = scope === "project" ? cwd : join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "opencode")
  const existing = yield* Effect.filter(
    ["opencode.jsonc", "opencode.json"].map((name) => join(folder, name)),
    (file) => Effect.orElseSucceed(fs.exists(file), () => false)
  )
  const command = yield* launch("opencode")
  return jsonTarget(
    existing[0] ?? join(folder, "opencode.json"),
    ["mcp", entryName],
    { type: "local", command, environment: { [idVariable]: newId() }, enabled: true },
    ["Restart opencode to have it. Inside opencode the plugin @gcszhn/mcp-sentinel-opencode-plugin does more: it wakes the session by itself."]
  )
})

const claudeTarget = Effect.fnUntraced(function*(scope: Scope) {
  const { cwd, env, home } = yield* HostEnvironment
  const [command, ...args] = yield* launch("claude-code")
  return jsonTarget(
    scope === "project" ? join(cwd, ".mcp.json") : join(env.CLAUDE_CONFIG_DIR ?? home, ".claude.json"),
    ["mcpServers", entryName],
    { type: "stdio", command, args, env: { [idVariable]: newId() } },
    [`New Claude Code sessions have it. \`claude -p\` needs --allowedTools mcp__${entryName}, or that name in permissions.allow of settings.json.`]
  )
})
