import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { homedir } from "node:os"
import type { ProcessInfo } from "./Ancestry.js"
import { readAncestors } from "./Ancestry.js"

/** A child of the sentinel sees this variable; a sentinel that sees it looks for no servers, so that none recurses. */
export const guardVariable = "MCP_SENTINEL_DEPTH"

/** Marks the sentinel's own entry in a harness's configuration exactly, whatever launches it. */
export const idVariable = "MCP_SENTINEL_ID"

export type Environment = Readonly<Record<string, string>>

/** What the process was given by its surroundings: the one door to `process`, so that tests bring their own. */
export class HostEnvironment extends Context.Tag("@gcszhn/mcp-sentinel-cli/HostEnvironment")<HostEnvironment, {
  readonly env: Environment
  readonly cwd: string
  readonly home: string
  readonly platform: NodeJS.Platform
  /** as `process.argv`: interpreter, script, arguments */
  readonly argv: ReadonlyArray<string>
  /** the processes above this one, nearest first; read once, empty where the platform does not tell */
  readonly ancestors: Effect.Effect<ReadonlyArray<ProcessInfo>>
}>() {
  static readonly layer = Layer.effect(
    HostEnvironment,
    Effect.gen(function*() {
      const env = definedOnly(process.env)
      return HostEnvironment.of({
        env,
        cwd: process.cwd(),
        home: env.HOME ?? env.USERPROFILE ?? homedir(),
        platform: process.platform,
        argv: process.argv,
        ancestors: yield* Effect.cached(readAncestors(process.ppid, process.platform))
      })
    })
  )
}

const definedOnly = (env: NodeJS.ProcessEnv): Environment =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))

/** The environment without the given variables. */
export const without = (env: Environment, names: Iterable<string>): Environment => {
  const dropped = new Set(names)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.has(name)))
}

/** The environment of something the sentinel starts to discover or to poll: it carries the recursion guard. */
export const guarded = (env: Environment): Environment => ({ ...env, [guardVariable]: "1" })

/** The environment of something that works for the user, such as a notifier command: neither guard nor own mark. */
export const unguarded = (env: Environment): Environment => without(env, [guardVariable, idVariable])
