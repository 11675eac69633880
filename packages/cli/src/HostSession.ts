import type { Origin } from "@gcszhn/mcp-sentinel-core/Origin"
import * as Effect from "effect/Effect"
import { codexSession } from "./discovery/Codex.js"
import { hostCommand, hostProcess } from "./discovery/HostProgram.js"
import type { Environment } from "./HostEnvironment.js"
import { HostEnvironment, unguarded } from "./HostEnvironment.js"
import type { Harness } from "./Options.js"

/** What can be done to reach the session that calls, where the host tells which one it is. */
export interface HostSession {
  /** commands with `{}` for the notice, as a person would type them; the first is what "auto" runs */
  readonly templates: ReadonlyArray<string>
  /** environment of notifier commands: the guard is gone, the host's own home is there */
  readonly env: Environment
  /** the host's program to run in place of a template's first word */
  readonly program: string
  /** a run that ends with the agent's turn, as a person would call it; undefined: not known to be one */
  readonly oneShot?: string | undefined
}

/** A session is a UUID in every host that names it; anything else is not put into a command. */
const safe = (session: string | undefined): string | undefined =>
  session !== undefined && /^[A-Za-z0-9][A-Za-z0-9_-]{7,127}$/.test(session) ? session : undefined

const templatesFor = (harness: Harness, session: string | undefined): ReadonlyArray<string> => {
  if (session === undefined) return []
  switch (harness) {
    case "codex":
      return [`codex queue --thread ${session} --message {}`, `codex exec resume --skip-git-repo-check ${session} {}`]
    case "claude-code":
      return [`claude -p --resume ${session} {}`]
    case "opencode":
    case "custom":
    case "none":
      return []
  }
}

const programs = { codex: "codex", "claude-code": "claude", opencode: "opencode", custom: "", none: "" } as const

/** Who calls, and how that session can be reached again. Codex names its thread, Claude Code its session. */
export const hostSession = Effect.fnUntraced(function*(harness: Harness, { session }: Origin) {
  const host = yield* HostEnvironment
  const program = programs[harness]
  const base = harness === "codex" ? (yield* codexSession).env : host.env
  const found: HostSession = {
    templates: templatesFor(harness, safe(session)),
    env: unguarded(base),
    program: program === "" ? "" : yield* hostCommand(program),
    oneShot: yield* oneShot(harness)
  }
  return found
})

const oneShot = Effect.fnUntraced(function*(harness: Harness) {
  const { env } = yield* HostEnvironment
  const argv = (yield* hostProcess(programs[harness]))?.argv ?? []
  switch (harness) {
    case "codex":
      return argv.some((word) => word === "exec" || word === "e") ? "codex exec" : undefined
    case "claude-code":
      return env.CLAUDE_CODE_ENTRYPOINT === "sdk-cli" || argv.some((word) => word === "-p" || word === "--print")
        ? "claude -p"
        : undefined
    case "opencode":
      return argv.includes("run") ? "opencode run" : undefined
    case "custom":
    case "none":
      return undefined
  }
})
