import type {
  Catalogue,
  HttpServer,
  ServerConfig,
  StdioServer,
  UnusableServer
} from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import { McpServers } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { resolve } from "node:path"
import { Host } from "./Host.js"

const Strings = Schema.Record({ key: Schema.String, value: Schema.String })

const Local = Schema.Struct({
  type: Schema.Literal("local"),
  command: Schema.NonEmptyArray(Schema.String),
  cwd: Schema.optional(Schema.String),
  environment: Schema.optional(Strings),
  timeout: Schema.optional(Schema.Number)
})

const Remote = Schema.Struct({
  type: Schema.Literal("remote"),
  url: Schema.String,
  headers: Schema.optional(Strings),
  timeout: Schema.optional(Schema.Number)
})

const Entry = Schema.Union(Local, Remote)
type Entry = typeof Entry.Type

const Configured = Schema.Struct({
  mcp: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown })),
  experimental: Schema.optional(Schema.Struct({ mcp_timeout: Schema.optional(Schema.Number) }))
})

const isSwitchedOff = Schema.is(Schema.Struct({ enabled: Schema.Literal(false) }))
const isTyped = Schema.is(Schema.Struct({ type: Schema.Literal("local", "remote") }))

const source = "OpenCode's configuration"

/** What opencode puts in place of a secret that it does not show. */
const hidden = new Set(["***", "[redacted]", "<redacted>"])

const hiddenFields = (where: string, values: Readonly<Record<string, string>> = {}): ReadonlyArray<string> =>
  Object.entries(values).flatMap(([key, value]) => hidden.has(value.trim().toLowerCase()) ? [`${where}.${key}`] : [])

const hiddenIn = (entry: Entry): ReadonlyArray<string> =>
  entry.type === "local"
    ? hiddenFields("environment", entry.environment)
    : [...hiddenFields("headers", entry.headers), ...hiddenFields("mcp", { url: entry.url })]

/** The environment that opencode itself would give the child. */
const childEnv = (own: NodeJS.ProcessEnv, entry: typeof Local.Type): Readonly<Record<string, string>> => {
  const inherited = Object.entries(own).flatMap(([key, value]) => value === undefined ? [] : [[key, value] as const])
  return {
    ...Object.fromEntries(inherited),
    ...(entry.command[0] === "opencode" ? { BUN_BE_BUN: "1" } : {}),
    ...entry.environment
  }
}

const endpointOf = (entry: Entry, directory: string, own: NodeJS.ProcessEnv): StdioServer | HttpServer => {
  if (entry.type === "remote") {
    return { _tag: "http", url: entry.url, headers: entry.headers ?? {}, transport: "auto" }
  }
  const [command, ...args] = entry.command
  return {
    _tag: "stdio",
    command,
    args,
    env: childEnv(own, entry),
    cwd: entry.cwd === undefined ? directory : resolve(directory, entry.cwd)
  }
}

export interface Surroundings {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  /** the state of each server as opencode tells it: a user may switch one on or off while it runs */
  readonly states: ReadonlyMap<string, string>
}

const refusal = (name: string, reason: string): Either.Either<never, UnusableServer> =>
  Either.left({ name, kind: "broken", reason })

const readEntry = (
  name: string,
  raw: unknown,
  around: Surroundings,
  defaultTimeout: number | undefined
): Either.Either<ServerConfig, UnusableServer> => {
  const state = around.states.get(name)
  if (state === "disabled" || (isSwitchedOff(raw) && state !== "connected")) {
    return Either.left({ name, kind: "disabled", reason: "it is switched off in opencode" })
  }
  if (!isTyped(raw)) return refusal(name, `its entry has no type; add "type": "local" or "type": "remote"`)
  const entry = Schema.decodeUnknownEither(Entry)(raw)
  if (Either.isLeft(entry)) return refusal(name, "its entry is not one that opencode documents; check mcp." + name)
  const fields = hiddenIn(entry.right)
  if (fields.length > 0) {
    return refusal(
      name,
      `opencode hides ${fields.join(", ")} from plugins, so the sentinel cannot log in; give the value to the server `
        + "in another way (for example through its own configuration file)"
    )
  }
  const timeout = entry.right.timeout ?? defaultTimeout
  return Either.right({
    name,
    endpoint: endpointOf(entry.right, around.directory, around.env),
    ...(timeout === undefined ? {} : { callTimeout: timeout }),
    ...(entry.right.timeout === undefined ? {} : { startupTimeout: entry.right.timeout })
  })
}

/** Reads the `mcp` block as opencode resolved it. Pure, and total: a bad entry never hides a good one. */
export const readConfig = (config: unknown, around: Surroundings): Catalogue => {
  const configured = Schema.decodeUnknownEither(Configured)(config)
  if (Either.isLeft(configured)) {
    return { servers: [], unusable: [], problems: ["opencode's configuration has a form that is not known here"] }
  }
  const { experimental, mcp = {} } = configured.right
  const entries = Object.entries(mcp).map(([name, raw]) => readEntry(name, raw, around, experimental?.mcp_timeout))
  return {
    servers: entries.flatMap((entry) => Either.isRight(entry) ? [{ ...entry.right, source }] : []),
    unusable: entries.flatMap((entry) => Either.isLeft(entry) ? [{ ...entry.left, source }] : []),
    problems: []
  }
}

/** ms for which a catalogue is taken as fresh: a server that is added or switched while opencode runs is seen. */
const freshMillis = 2_000

const discover = Effect.gen(function*() {
  const host = yield* Host
  const [config, states] = yield* Effect.all([
    host.config,
    Effect.orElseSucceed(host.mcpStatus, () => new Map<string, string>())
  ], { concurrency: "unbounded" })
  return readConfig(config, { directory: host.directory, env: process.env, states })
}).pipe(
  Effect.catchTag("HostFailure", (failure) =>
    Effect.succeed<Catalogue>({
      servers: [],
      unusable: [],
      problems: [`${failure.message}. Ask again; if it stays so, restart opencode.`]
    }))
)

/** The servers that opencode has, asked of opencode when they are needed and never while the plugin starts. */
export const layer = Layer.effect(
  McpServers,
  Effect.gen(function*() {
    const context = yield* Effect.context<Host>()
    const [catalogue, invalidate] = yield* Effect.cachedInvalidateWithTTL(
      Effect.provide(discover, context),
      freshMillis
    )
    return { catalogue, refresh: Effect.zipRight(invalidate, catalogue) }
  })
)
