import type * as FileSystem from "@effect/platform/FileSystem"
import { Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import type { Catalogue } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import { HostRules, McpServers } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { guardVariable, HostEnvironment } from "../HostEnvironment.js"
import type { Harness, SourceOptions } from "../Options.js"
import { readClaudeCode } from "./ClaudeCode.js"
import { readCodex } from "./Codex.js"
import { readConfigFile } from "./ConfigFile.js"
import type { Found } from "./Found.js"
import { nothing, overlay, problem } from "./Found.js"
import { readOpencode } from "./Opencode.js"
import { matchesTarget } from "./Pattern.js"
import { publicNames } from "./PublicNames.js"

/** The longest that discovery may take, in ms (SPEC "Harness layers"). */
const limit = 10_000

/** What the harness's configuration says about the sentinel's own entry. */
export class OwnEntry extends Context.Tag("@gcszhn/mcp-sentinel-cli/OwnEntry")<OwnEntry, {
  /** ms after which the host cuts a call of the sentinel's own tools, where the entry says so; waits for nothing */
  readonly callTimeout: Effect.Effect<number | undefined>
}>() {}

type Needs = FileSystem.FileSystem | HostEnvironment

const read = (harness: Harness, selfName: string | undefined): Effect.Effect<Found, never, Needs> => {
  switch (harness) {
    case "codex":
      return readCodex(selfName)
    case "opencode":
      return readOpencode(selfName)
    case "claude-code":
      return readClaudeCode(selfName)
    case "custom":
    case "none":
      return Effect.succeed(nothing)
  }
}

const bounded = (harness: Harness) =>
  Effect.timeoutTo({
    duration: limit,
    onSuccess: (found: Found) => found,
    onTimeout: () =>
      problem(
        `Looking for the servers of ${harness} took longer than ${limit / 1_000} s and was given up. ` +
          `Name a server again to repeat it, or give the servers in a file with --mcp-config.`
      )
  })

const emptyHanded = (options: SourceOptions): Found =>
  options.harness === "none" && options.configFile === undefined
    ? problem("No servers were looked for: give --harness codex, opencode or claude-code, or a file with --mcp-config.")
    : options.harness === "custom" && options.configFile === undefined
    ? problem("--harness custom needs a file of servers: --mcp-config FILE.")
    : nothing

const discover = Effect.fn("discover")(function*(options: SourceOptions) {
  const { env } = yield* HostEnvironment
  if (env[guardVariable] !== undefined) {
    return problem("This mcp-sentinel was started by another mcp-sentinel, so it looks for no servers.")
  }
  const { configFile, harness, selfName } = options
  const [host, file] = yield* Effect.all([
    read(harness, selfName).pipe(Effect.disconnect, bounded(harness)),
    configFile === undefined ? Effect.succeed(emptyHanded(options)) : readConfigFile(configFile, selfName)
  ], { concurrency: "unbounded" })
  return overlay(host, file)
})

/**
 * Runs an effect when it is first asked for, keeps what it brought, and shares one run among all who ask meanwhile.
 * `renew` wants a run that began after it was asked.
 */
const keeping = <A, R>(effect: Effect.Effect<A, never, R>) =>
  Effect.gen(function*() {
    const begun = yield* Ref.make(0)
    const kept = yield* Ref.make(Option.none<{ readonly value: A; readonly run: number }>())
    const one = yield* Effect.makeSemaphore(1)
    const since = (known: number) =>
      one.withPermits(1)(Effect.gen(function*() {
        const last = yield* Ref.get(kept)
        if (Option.isSome(last) && last.value.run > known) return last.value.value
        const run = yield* Ref.updateAndGet(begun, (count) => count + 1)
        const value = yield* effect
        yield* Ref.set(kept, Option.some({ value, run }))
        return value
      }))
    return {
      peek: Effect.map(Ref.get(kept), Option.map(({ value }) => value)),
      get: Effect.flatMap(
        Ref.get(kept),
        Option.match({ onNone: () => since(0), onSome: ({ value }) => Effect.succeed(value) })
      ),
      renew: Effect.flatMap(Ref.get(begun), since)
    }
  })

const refusal = (options: SourceOptions, found: Found, target: ToolTarget): string | undefined => {
  const denied = options.deny.find((pattern) => matchesTarget(pattern, target))
  if (denied !== undefined) return `the sentinel was started with --deny ${JSON.stringify(denied)}`
  if (options.allow.length > 0 && !options.allow.some((pattern) => matchesTarget(pattern, target))) {
    return `the sentinel was started with --allow ${
      options.allow.map((pattern) => JSON.stringify(pattern)).join(" --allow ")
    }`
  }
  return found.denies(target)
}

const make = (options: SourceOptions) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<Needs>()
    const found = yield* keeping(Effect.provide(discover(options), context))
    // begun now, so that the first tool call finds it done; nothing waits for it
    yield* Effect.forkScoped(found.get)

    const permit = (target: ToolTarget): Effect.Effect<void, Refused> =>
      Effect.flatMap(found.get, (known) => {
        const rule = refusal(options, known, target)
        return rule === undefined ? Effect.void : new Refused({
          message: `${target.server}/${target.tool} may not be polled: ${rule}.`
        })
      })

    return Context.make(McpServers, {
      catalogue: Effect.map(found.get, toCatalogue),
      refresh: Effect.map(found.renew, toCatalogue)
    }).pipe(
      Context.add(HostRules, { permit, publicNames: publicNames(options.harness) }),
      Context.add(OwnEntry, {
        callTimeout: Effect.map(found.peek, (known) => Option.getOrUndefined(known)?.ownCallTimeout)
      })
    )
  })

const toCatalogue = ({ problems, servers, unusable }: Found): Catalogue => ({ servers, unusable, problems })

/**
 * The servers of a harness and the harness's rules. Discovery starts with the layer and delays nothing; what needs it
 * waits, 10 s at most. It never fails: what is wrong is in the catalogue's problems, each with its next step.
 */
export const layer = (
  options: SourceOptions
): Layer.Layer<McpServers | OwnEntry, never, FileSystem.FileSystem | HostEnvironment> =>
  Layer.scopedContext(make(options))
