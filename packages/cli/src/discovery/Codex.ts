import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import type { ProcessInfo } from "../Ancestry.js"
import type { Environment } from "../HostEnvironment.js"
import { guarded, HostEnvironment, unguarded, without } from "../HostEnvironment.js"
import type { Candidate } from "../SelfEntry.js"
import { findSelf, selfFacts } from "../SelfEntry.js"
import type { Found, FoundServer, FoundUnusable } from "./Found.js"
import { nothing, problem, skipSelf } from "./Found.js"
import { hostProblem, hostProcess, runHost } from "./HostProgram.js"

/** ms for one codex command; its list alone takes 6 s when remote servers hang */
const commandTimeout = 8_000

/** codex processes that run at once */
const parallel = 4

const line = "codex mcp list --json"
const advice = "Check it in a terminal, or give the servers in a file with --mcp-config."

const Texts = Schema.NullishOr(Schema.Record({ key: Schema.String, value: Schema.String }))
const Text = Schema.NullishOr(Schema.String)

const Transport = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("stdio"),
    command: Schema.String,
    args: Schema.Array(Schema.String),
    env: Texts,
    env_vars: Schema.NullishOr(Schema.Array(Schema.Union(Schema.String, Schema.Struct({ name: Schema.String })))),
    cwd: Text
  }),
  Schema.Struct({
    type: Schema.Literal("streamable_http"),
    url: Schema.String,
    bearer_token_env_var: Text,
    http_headers: Texts,
    env_http_headers: Texts,
    http_headers_helper: Schema.optional(Schema.Unknown)
  })
)

const Entry = Schema.Struct({
  name: Schema.String,
  enabled: Schema.Boolean,
  disabled_reason: Text,
  transport: Transport,
  startup_timeout_sec: Schema.NullishOr(Schema.Number),
  tool_timeout_sec: Schema.NullishOr(Schema.Number),
  auth_status: Text
})
type Entry = typeof Entry.Type

const Entries = Schema.parseJson(Schema.Array(Schema.Unknown))

const ToolFilter = Schema.parseJson(Schema.Struct({
  enabled_tools: Schema.NullishOr(Schema.Array(Schema.String)),
  disabled_tools: Schema.NullishOr(Schema.Array(Schema.String))
}))

/**
 * The servers that Codex has in this session: `codex mcp list --json` with the session's CODEX_HOME, folder, `-c` and
 * `-p`, and `codex mcp get` for each, which alone tells the tools that are switched off. Neither starts a server.
 */
export const readCodex = Effect.fn("readCodex")(function*(selfName: string | undefined) {
  const session = yield* codexSession
  const listed = yield* list(session)
  return Either.isLeft(listed) ? problem(listed.left) : yield* toFound(session, listed.right, selfName)
})

/** The variables that Codex forwards to its servers; the sentinel needs them as well. Left: why they are not known. */
export const forwardedVariables = Effect.gen(function*() {
  const listed = yield* list(yield* codexSession)
  return Either.map(listed, (items) => {
    const entries = items.flatMap((item) => Option.toArray(Schema.decodeUnknownOption(Entry)(item)))
    return [...new Set(entries.filter(({ enabled }) => enabled).flatMap(({ transport }) => forwarded(transport)))]
  })
})

const list = Effect.fnUntraced(function*(session: CodexSession) {
  const listed = yield* Effect.either(
    codex(session, [...session.flags.before, "mcp", "list", "--json", ...session.flags.after])
  )
  if (Either.isLeft(listed)) return Either.left(hostProblem(line, listed.left, advice))
  if (listed.right.exitCode !== 0) {
    return Either.left(hostProblem(line, listed.right, `Correct Codex's configuration. ${advice}`))
  }
  return Either.mapLeft(
    Schema.decodeUnknownEither(Entries)(listed.right.stdout),
    () =>
      `\`${line}\` did not print the list of servers that this version of mcp-sentinel knows. Update Codex (0.171 works). ${advice}`
  )
})

interface CodexSession {
  readonly env: Environment
  /** where the session's configuration lives */
  readonly home: string
  /** the process of Codex is above this one: what was received is what Codex gives a server */
  readonly inside: boolean
  readonly flags: { readonly before: ReadonlyArray<string>; readonly after: ReadonlyArray<string> }
}

/** Codex hides its CODEX_HOME from its children, and what `-c` and `-p` changed is in no file: its process tells both. */
export const codexSession = Effect.gen(function*() {
  const { env, home } = yield* HostEnvironment
  const running = yield* hostProcess("codex")
  const codexHome = env.CODEX_HOME ?? (running === undefined ? undefined : yield* running.variable("CODEX_HOME"))
  const session: CodexSession = {
    env: codexHome === undefined ? env : { ...env, CODEX_HOME: codexHome },
    home: codexHome ?? join(home, ".codex"),
    inside: running !== undefined,
    flags: running === undefined ? { before: [], after: [] } : sessionFlags(running)
  }
  return session
})

const profileFlags = ["-p", "--profile"]
const overrideFlags = ["-c", "--config", "--enable", "--disable"]

/** The flags of a running codex that change its configuration; a profile is taken before the subcommand only. */
export const sessionFlags = ({ argv }: Pick<ProcessInfo, "argv">): CodexSession["flags"] => {
  const taken = (names: ReadonlyArray<string>) =>
    argv.flatMap((word, index) => {
      const value = argv[index + 1]
      if (names.includes(word)) return value === undefined ? [] : [word, value]
      return names.some((name) => name.startsWith("--") && word.startsWith(`${name}=`)) ? [word] : []
    })
  return { before: taken(profileFlags), after: taken(overrideFlags) }
}

const codex = (session: CodexSession, args: ReadonlyArray<string>) =>
  runHost({ name: "codex", args, env: session.env, timeout: commandTimeout })

const toFound = Effect.fnUntraced(function*(
  session: CodexSession,
  items: ReadonlyArray<unknown>,
  selfName: string | undefined
) {
  const source = join(session.home, "config.toml")
  const decoded = items.map((item) => ({ item, entry: Schema.decodeUnknownEither(Entry)(item) }))
  const entries = decoded.flatMap(({ entry }) => Either.isRight(entry) ? [entry.right] : [])
  const unread = decoded.flatMap(({ entry, item }): ReadonlyArray<FoundUnusable> =>
    Either.isRight(entry) ? [] : [{
      name: nameOf(item),
      kind: "broken",
      reason:
        "Codex tells it in a form that this version of mcp-sentinel does not know; update mcp-sentinel, or give it with --mcp-config",
      source
    }]
  )
  const candidates = entries.flatMap(toCandidate)
  const selves = findSelf(candidates, yield* selfFacts(candidates, { selfName, envIdentifies: session.inside }))
  const own = entries.find(({ name }) => selves.get(name)?.includes("itself"))
  const base = childEnvironment(session, own)
  const results = yield* Effect.forEach(
    entries,
    (entry) => selves.has(entry.name) ? Effect.succeed(self(entry, source)) : toServer(session, entry, base, source),
    { concurrency: parallel }
  )
  const found: Found = {
    ...nothing,
    servers: results.flatMap((result) => Either.isRight(result) ? [result.right] : []),
    unusable: [...unread, ...results.flatMap((result) => Either.isLeft(result) ? [result.left] : [])],
    ownCallTimeout: millis(own?.tool_timeout_sec)
  }
  return skipSelf(found, selves)
})

const nameOf = (item: unknown): string =>
  Either.getOrElse(
    Either.map(Schema.decodeUnknownEither(Schema.Struct({ name: Schema.String }))(item), ({ name }) => name),
    () => "(without a name)"
  )

const toCandidate = ({ name, transport }: Entry): ReadonlyArray<Candidate> =>
  transport.type === "stdio"
    ? [{ name, command: transport.command, args: transport.args, env: transport.env ?? {} }]
    : []

const self = ({ name }: Entry, source: string): Either.Either<FoundServer, FoundUnusable> =>
  Either.left({ name, kind: "self", reason: "it is this sentinel itself", source })

const forwarded = (transport: Entry["transport"]): ReadonlyArray<string> =>
  transport.type === "stdio"
    ? (transport.env_vars ?? []).map((variable) => typeof variable === "string" ? variable : variable.name)
    : [transport.bearer_token_env_var ?? [], Object.values(transport.env_http_headers ?? {})].flat()

/** What Codex gives every stdio server. */
const allowed = new Set([
  "HOME",
  "PATH",
  "SHELL",
  "TERM",
  "LANG",
  "LC_ALL",
  "TMPDIR",
  "USER",
  "LOGNAME",
  "TZ",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "NODE_EXTRA_CA_CERTS",
  "PIP_CERT",
  "REQUESTS_CA_BUNDLE",
  "PATHEXT",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "USERNAME",
  "USERDOMAIN",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
  "TEMP",
  "TMP",
  "COMSPEC"
])

/** Launchers such as npx add these to the sentinel's own environment. */
const fromLauncher = /^(npm_|INIT_CWD$|NODE$|COLOR$|EDITOR$|PNPM_|BUN_)/

/** What the sentinel received, less its own entry's variables (SPEC "Environment of stdio servers"). */
const childEnvironment = ({ env, inside }: CodexSession, own: Entry | undefined): Environment => {
  const ownNames = new Set(
    own === undefined || own.transport.type !== "stdio" ? [] : [
      ...Object.keys(own.transport.env ?? {}),
      ...forwarded(own.transport),
      "CODEX_HOME"
    ]
  )
  const kept = Object.keys(env).filter((name) =>
    allowed.has(name.toUpperCase()) || (inside && own !== undefined && !ownNames.has(name) && !fromLauncher.test(name))
  )
  return unguarded(without(env, Object.keys(env).filter((name) => !kept.includes(name))))
}

const millis = (seconds: number | null | undefined): number | undefined =>
  seconds === null || seconds === undefined ? undefined : seconds * 1_000

const toServer = (
  session: CodexSession,
  entry: Entry,
  base: Environment,
  source: string
): Effect.Effect<Either.Either<FoundServer, FoundUnusable>, never, HostEnvironment> =>
  Effect.gen(function*() {
    const unusable = (kind: FoundUnusable["kind"], reason: string) =>
      Either.left<FoundUnusable>({ name: entry.name, kind, reason, source })
    if (!entry.enabled) {
      return unusable("disabled", `it is switched off in Codex's configuration${reasonOf(entry)}`)
    }
    const missing = forwarded(entry.transport).filter((name) => session.env[name] === undefined)
    if (missing.length > 0) return unusable("broken", notForwarded(entry, missing))
    if (entry.transport.type === "streamable_http" && isSet(entry.transport.http_headers_helper)) {
      return unusable(
        "broken",
        "it gets its headers from a program (http_headers_helper), which the sentinel does not run; use http_headers or env_http_headers"
      )
    }
    const filter = yield* toolFilter(session, entry.name)
    if (filter === undefined) {
      return unusable(
        "broken",
        `\`codex mcp get ${entry.name} --json\` did not tell which of its tools are switched off, so none is called`
      )
    }
    return Either.right<FoundServer>({
      name: entry.name,
      endpoint: toEndpoint(session, entry.transport, base),
      callTimeout: millis(entry.tool_timeout_sec),
      startupTimeout: millis(entry.startup_timeout_sec),
      enabledTools: filter.enabled_tools ?? undefined,
      disabledTools: filter.disabled_tools ?? undefined,
      source: signsIn(entry) ? `${source} (its OAuth login is Codex's own and cannot be used here)` : source
    })
  })

const isSet = (value: unknown): boolean => value !== undefined && value !== null

const signsIn = ({ auth_status }: Entry): boolean => /o_?auth|log/i.test(auth_status ?? "")

const reasonOf = ({ disabled_reason }: Entry): string =>
  disabled_reason === null || disabled_reason === undefined ? "" : ` (${disabled_reason})`

const notForwarded = ({ transport }: Entry, missing: ReadonlyArray<string>): string =>
  `it needs ${missing.join(", ")}, which Codex did not pass on to the sentinel; add to the sentinel's own entry: ` +
  `env_vars = [${missing.map((name) => JSON.stringify(name)).join(", ")}]` +
  (transport.type === "stdio" ? "" : " (it is used for the server's headers)")

const toEndpoint = (
  session: CodexSession,
  transport: Entry["transport"],
  base: Environment
): FoundServer["endpoint"] => {
  const value = (name: string): string => session.env[name] ?? ""
  if (transport.type === "stdio") {
    const passed = Object.fromEntries(forwarded(transport).map((name) => [name, value(name)]))
    return {
      _tag: "stdio",
      command: transport.command,
      args: transport.args,
      env: guarded({ ...base, ...passed, ...transport.env }),
      cwd: transport.cwd ?? undefined
    }
  }
  const fromEnv = Object.entries(transport.env_http_headers ?? {}).map(([header, name]) =>
    [header, value(name)] as const
  )
  const token = transport.bearer_token_env_var
  return {
    _tag: "http",
    url: transport.url,
    headers: {
      ...transport.http_headers,
      ...Object.fromEntries(fromEnv),
      ...(isSet(token) ? { Authorization: `Bearer ${value(token ?? "")}` } : {})
    },
    transport: "auto"
  }
}

const toolFilter = (session: CodexSession, name: string) =>
  codex(session, [...session.flags.before, "mcp", "get", name, "--json", ...session.flags.after]).pipe(
    Effect.flatMap(({ exitCode, stdout }) =>
      exitCode === 0 ? Schema.decodeUnknown(ToolFilter)(stdout) : Effect.succeed(undefined)
    ),
    Effect.orElseSucceed(() => undefined)
  )
