import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import * as Effect from "effect/Effect"
import { getNodeValue } from "jsonc-parser"
import { join } from "node:path"
import type { ClaudeSession } from "./ClaudeSession.js"
import { projectKey, valuesOf } from "./ClaudeSession.js"
import { readJsonFile } from "./JsonFile.js"
import { wildcard } from "./Pattern.js"
import { publicNames, sanitise } from "./PublicNames.js"
import { isFields } from "./ServerEntry.js"

type Fields = Readonly<Record<string, unknown>>

/** What Claude Code's settings say about servers and tools. */
export interface ClaudeSettings {
  readonly problems: ReadonlyArray<string>
  /** why Claude Code does not use the server */
  readonly switchedOff: (name: string, scope: string) => string | undefined
  readonly denies: (target: ToolTarget) => string | undefined
}

interface SettingsFile {
  readonly file: string
  readonly values: Fields
  /** it comes with the project, and counts for approval only where the person trusts the folder */
  readonly shared: boolean
}

/** Where an administrator's files are. */
export const managedFolder = (platform: NodeJS.Platform): string => {
  switch (platform) {
    case "darwin":
      return "/Library/Application Support/ClaudeCode"
    case "win32":
      return "C:\\Program Files\\ClaudeCode"
    default:
      return "/etc/claude-code"
  }
}

/** Reads managed, user, project and local settings, and the state of the project in `.claude.json`. */
export const readSettings = Effect.fnUntraced(function*(session: ClaudeSession) {
  const places = [
    { file: join(managedFolder(session.platform), "managed-settings.json"), shared: false },
    { file: join(session.folder, "settings.json"), shared: false },
    { file: join(session.project, ".claude", "settings.json"), shared: true },
    { file: join(session.project, ".claude", "settings.local.json"), shared: false }
  ]
  const read = yield* Effect.forEach(
    places,
    (place) => Effect.map(readJsonFile(place.file), (file) => ({ ...place, read: file }))
  )
  const files = read.flatMap(({ file, read, shared }): ReadonlyArray<SettingsFile> => {
    const values: unknown = read._tag === "document" ? getNodeValue(read.document.root) : undefined
    return isFields(values) ? [{ file, values, shared }] : []
  })
  const project = yield* projectState(session)
  const settings: ClaudeSettings = {
    problems: read.flatMap(({ read }) =>
      read._tag === "broken" ? [`${read.reason}. Its rules are not known to the sentinel; correct the file.`] : []
    ),
    switchedOff: switchedOff(files, project, session.headless),
    denies: denies(files, session.argv)
  }
  return settings
})

const projectState = Effect.fnUntraced(function*(session: ClaudeSession) {
  const state = yield* readJsonFile(session.stateFile)
  if (state._tag !== "document") return {}
  const all: unknown = getNodeValue(state.document.root)
  const key = yield* projectKey(session, state.document)
  const project = isFields(all) && isFields(all.projects) ? all.projects[key] : undefined
  return isFields(project) ? project : {}
})

const listed = (values: Fields, field: string, name: string): boolean => {
  const list = values[field]
  return Array.isArray(list) && list.includes(name)
}

const deniedServer = (values: Fields, name: string): boolean =>
  Array.isArray(values.deniedMcpServers) &&
  values.deniedMcpServers.some((rule) => isFields(rule) && rule.serverName === name)

const switchedOff = (files: ReadonlyArray<SettingsFile>, project: Fields, headless: boolean) => {
  const trusted = headless || project.hasTrustDialogAccepted === true
  const approving = [...files.filter(({ shared }) => !shared || trusted), { file: "", values: project, shared: false }]
  return (name: string, scope: string): string | undefined => {
    const denying = files.find(({ values }) => deniedServer(values, name))
    if (denying !== undefined) return `deniedMcpServers in ${denying.file} names it`
    if (listed(project, "disabledMcpServers", name)) return "it is switched off in Claude Code for this project (/mcp)"
    if (scope !== "project") return undefined
    const disabling = files.find(({ values }) => listed(values, "disabledMcpjsonServers", name))
    if (disabling !== undefined) return `disabledMcpjsonServers in ${disabling.file} names it`
    const approved = approving.some(({ values }) =>
      values.enableAllProjectMcpServers === true || listed(values, "enabledMcpjsonServers", name)
    )
    return headless || approved
      ? undefined
      : "it waits for approval in Claude Code (run `claude` in this folder, or /mcp)"
  }
}

/** `permissions.deny` and `--disallowedTools`: `mcp__server`, `mcp__server__*`, `mcp__server__tool`. */
const denies = (files: ReadonlyArray<SettingsFile>, argv: ReadonlyArray<string>) => {
  const rules = [
    ...files.flatMap(({ file, values }) => {
      const list = isFields(values.permissions) ? values.permissions.deny : undefined
      return Array.isArray(list)
        ? list.filter((rule) => typeof rule === "string").map((rule) => ({
          rule,
          where: `permissions.deny in ${file}`
        }))
        : []
    }),
    ...valuesOf(argv, ["--disallowedTools", "--disallowed-tools"]).flatMap((value) => value.split(/[\s,]+/))
      .map((rule) => ({ rule, where: "--disallowedTools" }))
  ].filter(({ rule }) => rule.startsWith("mcp__"))
  return (target: ToolTarget): string | undefined => {
    const [tool = ""] = publicNames("claude-code")(target)
    const server = `mcp__${sanitise(target.server)}`
    const rule = rules.find((candidate) => {
      // a rule for some arguments only, `name(…)`: which arguments a wait will use is not decided here
      const matches = wildcard(candidate.rule.replace(/\(.*$/, ""))
      return matches(tool) || matches(server)
    })
    return rule === undefined ? undefined : `Claude Code's rule "${rule.rule}" (${rule.where}) denies it`
  }
}
