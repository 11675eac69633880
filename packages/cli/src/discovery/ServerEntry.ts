import type { HttpServer, ServerConfig, StdioServer } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import * as Either from "effect/Either"
import type { Environment } from "../HostEnvironment.js"
import { guarded } from "../HostEnvironment.js"
import type { Expand } from "./Expansion.js"

/** What is wrong with an entry: the field (a path below the entry, for its line), and what would be right. */
export interface EntryFault {
  readonly _tag: "fault"
  readonly field: ReadonlyArray<string>
  readonly reason: string
}

/** An entry that is switched off. */
export interface SwitchedOff {
  readonly _tag: "off"
}

export interface EntryContext {
  readonly expand: Expand
  /** what a child gets before the entry's own variables */
  readonly baseEnv: Environment
  /** ms; for entries that name none */
  readonly callTimeout?: number | undefined
  readonly startupTimeout?: number | undefined
}

type Fields = Readonly<Record<string, unknown>>
type Read<A> = Either.Either<A, EntryFault>

const fault = (field: ReadonlyArray<string>, reason: string): EntryFault => ({ _tag: "fault", field, reason })

const example = `{ "command": "npx", "args": ["-y", "some-server"] } or { "url": "https://host/mcp" }`

/**
 * Reads one entry in any of the spellings that harnesses use: `command` (text plus `args`, or one list), `env` or
 * `environment`, `url` (or `httpUrl`, `serverUrl`, `uri`) plus `headers`, `type` or `transport`, `enabled` or `disabled`.
 * Times are in ms. No message contains a value of the entry.
 */
export const readEntry = (
  name: string,
  value: unknown,
  context: EntryContext
): Either.Either<ServerConfig, EntryFault | SwitchedOff> =>
  Either.gen(function*() {
    if (name.trim() === "") return yield* Either.left(fault([], `a server needs a name that is not empty`))
    if (!isFields(value)) return yield* Either.left(fault([], `must be an object such as ${example}`))
    if (!(yield* isOn(value))) return yield* Either.left<SwitchedOff>({ _tag: "off" })
    const endpoint = yield* readEndpoint(value, context)
    return {
      name,
      endpoint,
      callTimeout: (yield* duration(value, "timeout")) ?? context.callTimeout,
      startupTimeout: (yield* duration(value, "startupTimeout")) ?? context.startupTimeout,
      enabledTools: yield* names(value, "enabledTools"),
      disabledTools: yield* names(value, "disabledTools")
    }
  })

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isOn = (entry: Fields): Read<boolean> =>
  Either.gen(function*() {
    return ((yield* flag(entry, "enabled")) ?? true) && !((yield* flag(entry, "disabled")) ?? false)
  })

const flag = (entry: Fields, field: string): Read<boolean | undefined> => {
  const value = entry[field]
  return value === undefined || typeof value === "boolean"
    ? Either.right(value)
    : Either.left(fault([field], `"${field}" must be true or false`))
}

const duration = (entry: Fields, field: string): Read<number | undefined> => {
  const value = entry[field]
  return value === undefined || (typeof value === "number" && value > 0 && value < 2 ** 31)
    ? Either.right(value)
    : Either.left(fault([field], `"${field}" must be a number of milliseconds above 0`))
}

const names = (entry: Fields, field: string): Read<ReadonlyArray<string> | undefined> =>
  entry[field] === undefined ? Either.right(undefined) : list(entry[field], field)

const list = (value: unknown, field: string): Read<ReadonlyArray<string>> =>
  Array.isArray(value) && value.every((item) => typeof item === "string")
    ? Either.right(value)
    : Either.left(fault([field], `"${field}" must be a list of strings`))

const urlFields = ["url", "httpUrl", "serverUrl", "uri"]
const kinds: Readonly<Record<string, "stdio" | HttpServer["transport"]>> = {
  stdio: "stdio",
  local: "stdio",
  remote: "auto",
  http: "http",
  streamableHttp: "http",
  "streamable-http": "http",
  "streamable_http": "http",
  sse: "sse"
}

const readKind = (entry: Fields, field: string): Read<"stdio" | HttpServer["transport"] | undefined> => {
  const value = entry[field]
  if (value === undefined) return Either.right(undefined)
  const kind = typeof value === "string" && Object.hasOwn(kinds, value) ? kinds[value] : undefined
  if (kind !== undefined) return Either.right(kind)
  return Either.left(fault([field], `"${field}" must be "stdio", "http" or "sse"`))
}

const readEndpoint = (entry: Fields, context: EntryContext): Read<StdioServer | HttpServer> =>
  Either.gen(function*() {
    const kind = (yield* readKind(entry, "type")) ?? (yield* readKind(entry, "transport"))
    const urls = urlFields.filter((field) => entry[field] !== undefined)
    const urlField = urls[0]
    const hasCommand = entry.command !== undefined
    if (urls.length > 1) {
      return yield* Either.left(fault([urls[1]!], `has both "${urls[0]}" and "${urls[1]}": keep one`))
    }
    if (hasCommand && urlField !== undefined) {
      return yield* Either.left(fault(["command"], `has both "command" and "${urlField}": keep one`))
    }
    if (kind === "stdio" || (kind === undefined && urlField === undefined)) {
      if (!hasCommand) return yield* Either.left(fault([], `has neither "command" nor "url"; write ${example}`))
      return yield* readStdio(entry, context)
    }
    if (urlField === undefined) {
      return yield* Either.left(fault(["type"], `is of a remote type and needs a "url", such as "https://host/mcp"`))
    }
    return yield* readHttp(entry, urlField, kind ?? "auto", context)
  })

const readStdio = (entry: Fields, context: EntryContext): Read<StdioServer> =>
  Either.gen(function*() {
    const [command, ...leading] = yield* readCommand(entry.command)
    const args = entry.args === undefined ? [] : yield* list(entry.args, "args")
    const own = yield* Either.map(
      Either.all([readTexts(entry, "environment", context), readTexts(entry, "env", context)]),
      ([first, second]) => ({ ...first, ...second })
    )
    const cwd = entry.cwd === undefined || entry.cwd === null ? undefined : yield* text(entry.cwd, "cwd", context)
    return {
      _tag: "stdio",
      command: yield* expand(command, ["command"], context),
      args: yield* Either.all([...leading, ...args].map((arg) => expand(arg, ["args"], context))),
      env: guarded({ ...context.baseEnv, ...own }),
      cwd
    }
  })

const readCommand = (value: unknown): Read<readonly [string, ...ReadonlyArray<string>]> => {
  const [command, ...args] = Array.isArray(value) ? value : [value]
  return typeof command === "string" && command.trim() !== "" && args.every((arg) => typeof arg === "string")
    ? Either.right([command, ...args])
    : Either.left(fault(["command"], `"command" must be a program's name, or a list of it and its arguments`))
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Bytes that fetch sends; a line break would end the header. */
const headerValue = /^(?:\t|[^\p{Cc}\u{100}-\u{10ffff}])*$/u

const readHttp = (
  entry: Fields,
  field: string,
  transport: HttpServer["transport"],
  context: EntryContext
): Read<HttpServer> =>
  Either.gen(function*() {
    const url = yield* text(entry[field], field, context)
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      return yield* Either.left(fault([field], `"${field}" must be a whole http:// or https:// address`))
    }
    if (entry.headersHelper !== undefined) {
      return yield* Either.left(fault(
        ["headersHelper"],
        `gets its headers from a program ("headersHelper"), which the sentinel does not run; write "headers" in a file for --mcp-config`
      ))
    }
    const headers = yield* readTexts(entry, "headers", context)
    const bad = Object.entries(headers).find(([name, value]) => !headerName.test(name) || !headerValue.test(value))
    if (bad !== undefined) {
      return yield* Either.left(fault(["headers", bad[0]], `"headers" has a name or a value that HTTP does not allow`))
    }
    return { _tag: "http", url, headers, transport }
  })

const readTexts = (entry: Fields, field: string, context: EntryContext): Read<Environment> => {
  const value = entry[field]
  if (value === undefined || value === null) return Either.right({})
  if (!isFields(value)) return Either.left(fault([field], `"${field}" must be an object of strings`))
  return Either.map(
    Either.all(
      Object.entries(value).map(([key, item]) =>
        typeof item === "string"
          ? Either.map(expand(item, [field, key], context), (expanded) => [key, expanded] as const)
          : Either.left(fault([field, key], `"${key}" in "${field}" must be a string: put it in quotes`))
      )
    ),
    (pairs) => Object.fromEntries(pairs)
  )
}

const text = (value: unknown, field: string, context: EntryContext): Read<string> =>
  typeof value === "string" && value !== ""
    ? expand(value, [field], context)
    : Either.left(fault([field], `"${field}" must be a string that is not empty`))

const expand = (value: string, field: ReadonlyArray<string>, context: EntryContext): Read<string> =>
  Either.mapLeft(context.expand(value), (missing) =>
    fault(
      field,
      `refers to ${missing.map((name) => `\${${name}}`).join(", ")}, which is not set where the sentinel runs; ` +
        `set it, or write a default: \${${missing[0]}:-value}`
    ))
