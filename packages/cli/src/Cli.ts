import * as Args from "@effect/cli/Args"
import * as CliConfig from "@effect/cli/CliConfig"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as ValidationError from "@effect/cli/ValidationError"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { version } from "@gcszhn/mcp-sentinel-core/version"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { checkCondition } from "./commands/CheckCondition.js"
import { installCommand, uninstallCommand } from "./commands/Install.js"
import { liveLine } from "./commands/LiveLine.js"
import { servers } from "./commands/Servers.js"
import { wait } from "./commands/Wait.js"
import * as Discovery from "./discovery/Discovery.js"
import { HostEnvironment } from "./HostEnvironment.js"
import { stderrLogger } from "./log.js"
import { engine, mcp } from "./Mcp.js"
import { harnesses, harnessOf, type SourceOptions } from "./Options.js"

const source = {
  harness: Options.choice("harness", harnesses).pipe(
    Options.withDescription("whose MCP servers to use; default: custom with --mcp-config, else none"),
    Options.optional
  ),
  mcpConfig: Options.text("mcp-config").pipe(
    Options.withDescription("a JSON file of MCP servers; beside a harness it adds to what is found, winning by name"),
    Options.optional
  ),
  allow: Options.text("allow").pipe(
    Options.withDescription("SERVER/TOOL pattern of tools that may be polled, * for any; repeatable; default: all"),
    Options.repeated
  ),
  deny: Options.text("deny").pipe(
    Options.withDescription("SERVER/TOOL pattern of tools that may not be polled; repeatable; wins over --allow"),
    Options.repeated
  ),
  selfName: Options.text("self-name").pipe(
    Options.withDescription("name of the sentinel's own entry in the harness's configuration, which is skipped"),
    Options.optional
  )
}

type Parsed = Command.Command.ParseConfig<typeof source>

const sourceOf = ({ allow, deny, harness, mcpConfig, selfName }: Parsed): SourceOptions => {
  const configFile = Option.getOrUndefined(mcpConfig)
  return {
    harness: harnessOf(Option.getOrUndefined(harness), configFile),
    configFile,
    allow,
    deny,
    selfName: Option.getOrUndefined(selfName)
  }
}

const json = Options.boolean("json").pipe(Options.withDescription("print JSON"))

/** The exit code of a command that has one of its own. */
const exitWith = (code: number) => Effect.sync(() => process.exitCode = code)

const mcpCommand = Command.make("mcp", source, (parsed) => mcp(sourceOf(parsed), process)).pipe(
  Command.withDescription("serve the sentinel's tools to an agent harness over stdio (MCP)")
)

const serversCommand = Command.make(
  "servers",
  { ...source, json },
  (parsed) => servers(parsed.json).pipe(Effect.flatMap(exitWith), Effect.provide(Discovery.layer(sourceOf(parsed))))
).pipe(
  Command.withDescription("show which MCP servers are found, where, and which are skipped and why")
)

const conditionText = "condition as JSON: {\"path\": \"status\", \"is\": \"eq\", \"value\": \"done\"}"

const waitCommand = Command.make("wait", {
  ...source,
  json,
  server: Args.text({ name: "server" }),
  tool: Args.text({ name: "tool" }),
  args: Options.text("args").pipe(Options.withDescription("arguments as a JSON object"), Options.withDefault("{}")),
  until: Options.text("until").pipe(Options.withDescription(`completed when this holds; ${conditionText}`)),
  failWhen: Options.text("fail-when").pipe(Options.withDescription("failed when this holds"), Options.optional),
  interval: Options.integer("interval").pipe(Options.withDescription("ms between polls"), Options.withDefault(5_000)),
  timeout: Options.integer("timeout").pipe(
    Options.withDescription("longest wait in ms; 0 = none"),
    Options.withDefault(0)
  ),
  maxErrors: Options.integer("max-errors").pipe(
    Options.withDescription("consecutive failed calls at which to give up; 0 = never"),
    Options.withDefault(3)
  )
}, (parsed) =>
  wait({ ...parsed, failWhen: Option.getOrUndefined(parsed.failWhen) }, liveLine(process.stderr)).pipe(
    Effect.flatMap(exitWith),
    Effect.provide(engine(sourceOf(parsed)))
  )).pipe(
    Command.withDescription(
      "poll a tool in the foreground; exit code 0 completed, 1 failed, 124 timeout, 130 interrupted"
    )
  )

const checkCommand = Command.make("check-condition", {
  json,
  condition: Args.text({ name: "condition" }).pipe(Args.withDescription(conditionText))
}, ({ condition, json }) => Effect.flatMap(checkCondition(condition, json, process.stdin), exitWith)).pipe(
  Command.withDescription(
    "judge a sample from stdin: does the condition hold, and why (exit code 0 holds, 1 not, 2 wrong)"
  )
)

const root = Command.make("mcp-sentinel").pipe(
  Command.withDescription("Wait for long MCP jobs without paying tokens for every look"),
  Command.withSubcommands([mcpCommand, serversCommand, waitCommand, checkCommand, installCommand, uninstallCommand])
)

const cli = Command.run(root, { name: "mcp-sentinel", version })

const host = Layer.mergeAll(NodeContext.layer, HostEnvironment.layer, CliConfig.layer({ showBuiltIns: true }))

/** Runs the command line with the whole command-line library. A wrong command line is told once, with exit code 1. */
export const run = (argv: ReadonlyArray<string>): void =>
  NodeRuntime.runMain(
    cli(argv).pipe(
      Effect.catchIf(ValidationError.isValidationError, () => exitWith(1)),
      Effect.provide(host),
      Effect.provide(stderrLogger("info"))
    ),
    {
      disablePrettyLogger: true,
      teardown: (exit, onExit) =>
        onExit(Exit.isSuccess(exit) ? Number(process.exitCode ?? 0) : Exit.isInterrupted(exit) ? 130 : 1)
    }
  )
