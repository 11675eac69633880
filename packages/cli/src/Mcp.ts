import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { defaultTeardown, type Teardown } from "@effect/platform/Runtime"
import { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import * as McpInvoker from "@gcszhn/mcp-sentinel-core/mcp/McpInvoker"
import { McpServers } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import type { Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import { Sentinel } from "@gcszhn/mcp-sentinel-core/Sentinel"
import { Settings } from "@gcszhn/mcp-sentinel-core/Settings"
import { TaskStore } from "@gcszhn/mcp-sentinel-core/TaskStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CommandNotifier from "./CommandNotifier.js"
import * as Discovery from "./discovery/Discovery.js"
import { HostEnvironment } from "./HostEnvironment.js"
import { stderrLogger } from "./log.js"
import { serve, type Streams } from "./McpServer.js"
import { NoNotifier } from "./NoNotifier.js"
import * as NotifierToolKit from "./NotifierToolKit.js"
import type { McpOptions, SourceOptions } from "./Options.js"

/** The engine over the servers that the harness has. */
const engineWith = <N>(options: SourceOptions, notifier: Layer.Layer<N | Notifier, never, HostEnvironment>) =>
  Sentinel.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(TaskStore.layerMemory, McpInvoker.layer, notifier)),
    Layer.provide(ConnectionPool.layer),
    Layer.provideMerge(Discovery.layer(options)),
    Layer.provideMerge(Settings.layer)
  )

/** The engine with nobody to notify, for a command that waits itself. */
export const engine = (options: SourceOptions) => engineWith(options, NoNotifier)

/** What discovery could not use, on stderr: a person who looks there need not ask the agent (SPEC "Harness layers"). */
const logProblems = Effect.gen(function*() {
  const servers = yield* McpServers
  const { problems, unusable } = yield* servers.catalogue
  for (const message of problems) yield* Effect.logWarning(message)
  for (const { kind, name, reason } of unusable) {
    const log = kind === "broken" ? Effect.logWarning : Effect.logInfo
    yield* log(`Server ${JSON.stringify(name)} is not used: ${reason}`)
  }
})

/** `mcp-sentinel mcp`: the toolkit, served over stdio until stdin ends. */
export const mcp = (options: SourceOptions, streams: Streams) =>
  Effect.forkScoped(logProblems).pipe(
    Effect.zipRight(serve(streams)),
    Effect.scoped,
    Effect.provide(
      Layer.provideMerge(NotifierToolKit.layer, engineWith(options, CommandNotifier.layer(options.harness)))
    )
  )

const host = Layer.merge(NodeFileSystem.layer, HostEnvironment.layer)

/** ms for what is still to be written when all is done, in case that nobody reads it */
const flushMillis = 1_000

/** Ends by itself, or at the latest when a host that does not read our output has had its time. */
const teardown: Teardown = (exit, onExit) => {
  setTimeout(() => process.exit(), flushMillis).unref()
  defaultTeardown(exit, onExit)
}

/**
 * The first signal begins the end, which has limits of its own. A second one, as hosts send that wait less than that, must
 * not cut it short and leave children behind; nor must the end of the terminal.
 */
const outliveSignals = () => {
  for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => undefined)
  process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))
}

/** Runs `mcp` as the whole program, without the weight of the command-line library. */
export const run = (options: McpOptions, streams: Streams): void => {
  outliveSignals()
  NodeRuntime.runMain(
    mcp(options, streams).pipe(
      Effect.provide(host),
      Effect.provide(stderrLogger(options.logLevel)),
      Effect.ensuring(Effect.sync(() => process.exitCode = 0))
    ),
    { disablePrettyLogger: true, teardown }
  )
}
