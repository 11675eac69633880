import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import { basename } from "node:path"
import type { ProcessInfo } from "./Ancestry.js"
import type { Environment } from "./HostEnvironment.js"
import { HostEnvironment, idVariable } from "./HostEnvironment.js"

/** A stdio entry of the configuration. `env` holds the entry's own variables only. */
export interface Candidate {
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Environment
}

/** What this process knows of itself. */
export interface SelfFacts {
  readonly env: Environment
  /** as `process.argv` */
  readonly argv: ReadonlyArray<string>
  /** command lines of the processes between this one and its host, nearest first; no host known: the parent's only */
  readonly launchers: ReadonlyArray<ReadonlyArray<string>>
  readonly hostIsKnown: boolean
  /** the value of --self-name */
  readonly selfName?: string | undefined
  /** the host gives a child nothing but an allow-list and the entry's variables, so that these identify it */
  readonly envIdentifies: boolean
  /** links resolved, the script of this process among them */
  readonly realPath: (path: string) => string
}

const packageName = "@gcszhn/mcp-sentinel-cli"
const programName = "mcp-sentinel"
const selfNameFlag = "--self-name"

const self = "it is this sentinel itself"
const another = "it is an mcp-sentinel, and a sentinel does not watch a sentinel"

/**
 * The entries that are mcp-sentinel, and why they are skipped. This process is known by, in this order: the mark that
 * `install` writes, the command line that the host started, its --self-name, the entry's variables (where the host
 * passes on nothing else), and being the only entry that names a sentinel. Whatever else names the package, its program
 * or this very script is another sentinel, and skipped as well. A remote entry is not seen here: it tells its name when
 * it is connected to.
 */
export const findSelf = (candidates: ReadonlyArray<Candidate>, facts: SelfFacts): ReadonlyMap<string, string> => {
  const sentinels = candidates.filter((candidate) => namesSentinel(candidate, facts))
  const certain = firstNonEmpty(
    () => candidates.filter((candidate) => hasOwnId(candidate, facts)),
    () => candidates.filter((candidate) => isCommandLine(candidate, topCommandLine(facts), facts)),
    () => candidates.filter((candidate) => hasSelfName(candidate, facts)),
    () => only(candidates.filter((candidate) => hasOwnVariables(candidate, facts))),
    () => only(sentinels)
  )
  return new Map([
    ...[...sentinels, ...candidates.filter((candidate) => candidate.env[idVariable] !== undefined)]
      .map(({ name }) => [name, another] as const),
    ...certain.map(({ name }) => [name, self] as const)
  ])
}

const firstNonEmpty = (
  ...looks: ReadonlyArray<() => ReadonlyArray<Candidate>>
): ReadonlyArray<Candidate> => {
  for (const look of looks) {
    const found = look()
    if (found.length > 0) return found
  }
  return []
}

const only = (candidates: ReadonlyArray<Candidate>) => candidates.length === 1 ? candidates : []

const hasOwnId = ({ env }: Candidate, facts: SelfFacts): boolean =>
  env[idVariable] !== undefined && env[idVariable] === facts.env[idVariable]

/** What the host itself started: the process right below it, which is this one unless a launcher stands between. */
const topCommandLine = ({ argv, hostIsKnown, launchers }: SelfFacts): ReadonlyArray<string> =>
  (hostIsKnown ? launchers.at(-1) : undefined) ?? argv

const isCommandLine = (candidate: Candidate, argv: ReadonlyArray<string>, facts: SelfFacts): boolean =>
  // a script is shown behind its interpreter
  [argv, argv.slice(1)].some(([program, ...args]) =>
    program !== undefined &&
    isProgram(candidate.command, program, facts) &&
    // where only `ps` tells, a command line comes split at every space
    candidate.args.join(" ") === args.join(" ")
  )

const isProgram = (wanted: string, actual: string, { realPath }: SelfFacts): boolean =>
  wanted === actual || realPath(wanted) === realPath(actual) ||
  ((bare(wanted) || bare(actual)) && stem(wanted) === stem(actual))

const bare = (program: string): boolean => !/[\\/]/.test(program)

/** A program's name without its folder and the endings that launchers and Windows add. */
export const stem = (program: string): string =>
  basename(program.replaceAll("\\", "/")).replace(/\.(exe|cmd|[cm]?js)$/i, "")

const hasSelfName = ({ args }: Candidate, { selfName }: SelfFacts): boolean =>
  selfName !== undefined &&
  args.some((arg, index) =>
    arg === `${selfNameFlag}=${selfName}` || (arg === selfNameFlag && args[index + 1] === selfName)
  )

/** Variables that many entries set alike. */
const common = new Set(["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "SHELL", "USER", "NODE_ENV", "DEBUG"])

const hasOwnVariables = ({ env }: Candidate, facts: SelfFacts): boolean => {
  const own = Object.entries(env).filter(([name]) => !common.has(name))
  return facts.envIdentifies && own.length > 0 && own.every(([name, value]) => facts.env[name] === value)
}

const namesSentinel = ({ args, command }: Candidate, facts: SelfFacts): boolean => {
  const script = facts.argv[1]
  const words = [command, ...args]
  return stem(command) === programName || words.some((word, index) =>
    isPackage(word) ||
    (stem(word) === programName && words[index + 1] === "mcp") ||
    (script !== undefined && !bare(word) && facts.realPath(word) === facts.realPath(script)) ||
    isShellLine(word, script)
  )
}

/** `@gcszhn/mcp-sentinel-cli`, with a version or a launcher's flag, or as a folder of node_modules. */
const isPackage = (word: string): boolean =>
  new RegExp(`^(--package=)?${packageName}(@[^/]*)?$`).test(word) ||
  word.replaceAll("\\", "/").includes(`node_modules/${packageName}/`)

/** A whole line for a shell that runs the program, the package or this script. */
const isShellLine = (word: string, script: string | undefined): boolean =>
  /\s/.test(word) && (
    /(^|[\s/'"\\])mcp-sentinel(-cli)?(@[^\s'"/]*)?(\.[cm]?js|\.cmd)?['"]?\s+mcp(\s|$)/.test(word) ||
    (script !== undefined && word.includes(script))
  )

const hosts = new Set(["codex", "claude", "claude-code", "opencode"])

/** Whether this is an agent harness that `--harness` knows. */
export const isHost = ({ argv, exe }: ProcessInfo): boolean =>
  [argv[0], exe, stem(argv[0] ?? "") === "node" ? argv[1] : undefined].some((program) =>
    program !== undefined && hosts.has(stem(program))
  )

/** Gathers the facts of this process, for these candidates. */
export const selfFacts = Effect.fnUntraced(function*(
  candidates: ReadonlyArray<Candidate>,
  { envIdentifies, selfName }: { readonly selfName?: string | undefined; readonly envIdentifies: boolean }
) {
  const { ancestors, argv, env } = yield* HostEnvironment
  const chain = yield* ancestors
  const host = chain.findIndex(isHost)
  const launchers = (host === -1 ? chain.slice(0, 1) : chain.slice(0, host)).map((process) => process.argv)
  const paths = [...candidates.flatMap(({ args, command }) => [command, ...args]), ...argv, ...launchers.flat()]
  const resolved = yield* resolveLinks(paths.filter((path) => !bare(path)))
  const facts: SelfFacts = {
    env,
    argv,
    launchers,
    hostIsKnown: host !== -1,
    selfName,
    envIdentifies,
    realPath: (path) => resolved.get(path) ?? path
  }
  return facts
})

const resolveLinks = Effect.fnUntraced(function*(paths: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const pairs = yield* Effect.forEach(
    new Set(paths),
    (path) => Effect.map(Effect.orElseSucceed(fs.realPath(path), () => path), (real) => [path, real] as const),
    { concurrency: 8 }
  )
  return new Map(pairs)
})
