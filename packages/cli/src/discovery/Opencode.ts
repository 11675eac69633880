import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { isAbsolute, join } from "node:path"
import type { Environment } from "../HostEnvironment.js"
import { HostEnvironment, unguarded, without } from "../HostEnvironment.js"
import type { CommandResult } from "../RunCommand.js"
import type { Candidate } from "../SelfEntry.js"
import { findSelf, selfFacts } from "../SelfEntry.js"
import { verbatim } from "./Expansion.js"
import type { Found, FoundServer, FoundUnusable } from "./Found.js"
import { nothing, problem, skipSelf } from "./Found.js"
import { hostProblem, runHost } from "./HostProgram.js"
import { readOpencodeFiles } from "./OpencodeFiles.js"
import { opencodeDenies } from "./OpencodeRules.js"
import { isFields, readEntry } from "./ServerEntry.js"

/** ms; 2 s on an idle machine */
const commandTimeout = 8_000

const advice = "Check it in a terminal, or give the servers in a file with --mcp-config."
const line = "opencode debug config"
const source = "opencode's configuration"

/** What opencode prints in place of a secret. */
const hidden = "***"

/**
 * The servers that opencode has in this folder. `opencode debug config` merges the layers of its configuration, and
 * starts nothing; the secrets that it hides are read from the configuration files.
 */
export const readOpencode = Effect.fn("readOpencode")(function*(selfName: string | undefined) {
  const { env } = yield* HostEnvironment
  const printed = yield* Effect.either(debugConfig(env))
  if (Either.isLeft(printed)) return problem(hostProblem(line, printed.left, advice))
  if (printed.right.exitCode !== 0) {
    return problem(hostProblem(line, printed.right, `Correct opencode's configuration. ${advice}`))
  }
  const config = parseConfig(printed.right.stdout)
  if (config === undefined) {
    return problem(
      `\`${line}\` did not print a configuration that this version of mcp-sentinel knows. Update opencode (1.18 works). ${advice}`
    )
  }
  return yield* toFound(config, selfName)
})

const run = (env: Environment, args: ReadonlyArray<string>) =>
  runHost({ name: "opencode", args, env, timeout: commandTimeout })

/** Without plugins, whose output would stand in front of the JSON; an older opencode does not know the flag. */
const debugConfig = (env: Environment) =>
  Effect.flatMap(
    run(env, ["debug", "config", "--pure"]),
    (result) => isUsageError(result) ? run(env, ["debug", "config"]) : Effect.succeed(result)
  )

const isUsageError = ({ exitCode, stderr }: CommandResult): boolean =>
  exitCode !== 0 && /unknown argument/i.test(stderr)

const parseConfig = (stdout: string) => {
  const start = stdout.search(/^\{/m)
  const parsed = Either.try((): unknown => JSON.parse(stdout.slice(start)))
  return start >= 0 && Either.isRight(parsed) && isFields(parsed.right) ? parsed.right : undefined
}

type Config = Readonly<Record<string, unknown>>

const entriesOf = (config: Config): ReadonlyArray<readonly [string, unknown]> =>
  isFields(config.mcp) ? Object.entries(config.mcp) : []

const toFound = Effect.fnUntraced(function*(config: Config, selfName: string | undefined) {
  const { cwd, env } = yield* HostEnvironment
  const secrets = entriesOf(config).some(([, entry]) => hides(entry)) ? yield* readOpencodeFiles : {}
  const revealed = entriesOf(config).map(([name, entry]) => [name, reveal(entry, fieldOf(secrets, name))] as const)
  const candidates = revealed.flatMap(([name, entry]) => toCandidate(name, entry))
  const selves = findSelf(candidates, yield* selfFacts(candidates, { selfName, envIdentifies: false }))
  const own = candidates.filter(({ name }) => selves.has(name)).flatMap((candidate) => Object.keys(candidate.env))
  const context = {
    expand: verbatim,
    baseEnv: unguarded(without(env, own)),
    callTimeout: defaultTimeout(config)
  }
  const results = revealed.map(([name, entry]) => toServer(name, entry, context, cwd))
  const found: Found = {
    ...nothing,
    servers: results.flatMap((result) => Either.isRight(result) ? [result.right] : []),
    unusable: results.flatMap((result) => Either.isLeft(result) ? [result.left] : []),
    denies: opencodeDenies(config),
    ownCallTimeout: ownTimeout(
      revealed.filter(([name]) => selves.get(name)?.includes("itself")).map(([, entry]) => entry)
    )
  }
  return skipSelf(found, selves)
})

const fieldOf = (value: unknown, name: string): unknown =>
  isFields(value) && Object.hasOwn(value, name) ? value[name] : undefined

const defaultTimeout = (config: Config): number | undefined => {
  const timeout = fieldOf(config.experimental, "mcp_timeout")
  return typeof timeout === "number" && timeout > 0 ? timeout : undefined
}

const ownTimeout = ([own]: ReadonlyArray<unknown>): number | undefined => {
  const timeout = fieldOf(own, "timeout")
  return typeof timeout === "number" ? timeout : undefined
}

const hides = (value: unknown): boolean => value === hidden || (isFields(value) && Object.values(value).some(hides))

/** Puts what the files say where opencode hid a value; everything else stays as opencode merged it. */
const reveal = (shown: unknown, written: unknown): unknown => {
  if (shown === hidden) return typeof written === "string" ? written : shown
  return isFields(shown)
    ? Object.fromEntries(Object.entries(shown).map(([key, value]) => [key, reveal(value, fieldOf(written, key))]))
    : shown
}

const toCandidate = (name: string, entry: unknown): ReadonlyArray<Candidate> => {
  const command = fieldOf(entry, "command")
  if (!Array.isArray(command) || !command.every((word) => typeof word === "string")) return []
  const [program = "", ...args] = command
  const env = fieldOf(entry, "environment")
  return [{ name, command: program, args, env: isFields(env) ? onlyTexts(env) : {} }]
}

const onlyTexts = (fields: Config): Environment =>
  Object.fromEntries(Object.entries(fields).flatMap(([key, value]) => typeof value === "string" ? [[key, value]] : []))

const toServer = (
  name: string,
  entry: unknown,
  context: Parameters<typeof readEntry>[2],
  cwd: string
): Either.Either<FoundServer, FoundUnusable> => {
  const unusable = (kind: FoundUnusable["kind"], reason: string): FoundUnusable => ({ name, kind, reason, source })
  if (fieldOf(entry, "enabled") === false) return Either.left(unusable("disabled", "it is switched off in opencode"))
  const secret = hiddenField(entry)
  if (secret !== undefined) {
    return Either.left(unusable(
      "broken",
      `opencode hides the value of ${secret}, and it was not found in opencode's configuration files; give the server in a file with --mcp-config`
    ))
  }
  const oauth = isFields(fieldOf(entry, "oauth"))
  return Either.mapBoth(readEntry(name, entry, context), {
    onLeft: (left) =>
      left._tag === "off"
        ? unusable("disabled", "it is switched off in opencode")
        : unusable("broken", ["mcp", name, ...left.field].join(".") + ` in ${source}: ${left.reason}`),
    onRight: (server): FoundServer => ({
      ...server,
      endpoint: server.endpoint._tag === "stdio"
        ? { ...server.endpoint, cwd: folderOf(server.endpoint.cwd, cwd) }
        : server.endpoint,
      source: oauth ? `${source} (its OAuth login is opencode's own and cannot be used here)` : source
    })
  })
}

const folderOf = (folder: string | undefined, cwd: string): string | undefined =>
  folder === undefined || isAbsolute(folder) ? folder : join(cwd, folder)

const hiddenField = (entry: unknown): string | undefined => {
  if (fieldOf(entry, "url") === hidden) return "url"
  for (const group of ["headers", "environment"]) {
    const values = fieldOf(entry, group)
    const found = isFields(values) ? Object.entries(values).find(([, value]) => value === hidden) : undefined
    if (found !== undefined) return `${group}.${found[0]}`
  }
  return undefined
}
