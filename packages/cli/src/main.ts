import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { HostEnvironment } from "./HostEnvironment.js"
import { stderrLogger } from "./log.js"
import { mcp } from "./Mcp.js"
import { fastMcpOptions } from "./Options.js"

const host = Layer.merge(NodeFileSystem.layer, HostEnvironment.layer)

/** Runs the command line, and ends the process with its exit code. */
export const main = async (argv: ReadonlyArray<string>): Promise<void> => {
  const options = fastMcpOptions(argv.slice(2))
  if (options === undefined) return (await import("./Cli.js")).run(argv)
  NodeRuntime.runMain(
    mcp(options, process).pipe(
      Effect.provide(host),
      Effect.provide(stderrLogger(options.logLevel)),
      Effect.ensuring(Effect.sync(() => process.exitCode = 0))
    ),
    { disablePrettyLogger: true }
  )
}
