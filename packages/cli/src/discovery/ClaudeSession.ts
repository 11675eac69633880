import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { dirname, join } from "node:path"
import { HostEnvironment } from "../HostEnvironment.js"
import { hostProcess } from "./HostProgram.js"
import type { JsonDocument } from "./JsonFile.js"
import { membersOf } from "./JsonFile.js"

export type ClaudeSession = Effect.Effect.Success<typeof claudeSession>

/** Where Claude Code keeps the settings of this session, and how it was started. */
export const claudeSession = Effect.gen(function*() {
  const { cwd, env, home, platform } = yield* HostEnvironment
  const running = yield* hostProcess("claude")
  const project = env.CLAUDE_PROJECT_DIR ?? cwd
  return {
    env,
    platform,
    project,
    argv: running?.argv ?? [],
    folder: env.CLAUDE_CONFIG_DIR ?? join(home, ".claude"),
    stateFile: join(env.CLAUDE_CONFIG_DIR ?? home, ".claude.json"),
    /** without a person, as in `claude -p`, nothing waits for approval */
    headless: env.CLAUDE_CODE_ENTRYPOINT !== undefined && env.CLAUDE_CODE_ENTRYPOINT !== "cli"
  }
})

/** From the top of the file system down to the folder. */
export const above = (folder: string): ReadonlyArray<string> =>
  dirname(folder) === folder ? [folder] : [...above(dirname(folder)), folder]

/** Claude Code files a project under the session's folder, or under the repository's root. */
export const projectKey = Effect.fnUntraced(function*(session: ClaudeSession, state: JsonDocument) {
  const fs = yield* FileSystem.FileSystem
  const known = new Set(membersOf(state, ["projects"]).map(({ name }) => name))
  const real = yield* Effect.orElseSucceed(fs.realPath(session.project), () => session.project)
  return [...above(session.project).toReversed(), ...above(real).toReversed()].find((folder) => known.has(folder)) ??
    session.project
})

/** The values of options that take several, as `--flag a b` or `--flag=a`. */
export const valuesOf = (argv: ReadonlyArray<string>, flags: ReadonlyArray<string>): ReadonlyArray<string> =>
  argv.flatMap((word, index) => {
    const [flag, ...rest] = word.split("=")
    if (flag !== undefined && rest.length > 0 && flags.includes(flag)) return [rest.join("=")]
    if (!flags.includes(word)) return []
    const values = argv.slice(index + 1)
    const end = values.findIndex((value) => value.startsWith("-"))
    return end === -1 ? values : values.slice(0, end)
  })
