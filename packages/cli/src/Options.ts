import { parseArgs } from "node:util"

export const harnesses = ["codex", "opencode", "claude-code", "custom", "none"] as const
export type Harness = (typeof harnesses)[number]

export const logLevels = ["all", "trace", "debug", "info", "warning", "error", "fatal", "none"] as const
export type LogLevelName = (typeof logLevels)[number]

/** Where servers come from, and which of their tools may be polled. */
export interface SourceOptions {
  readonly harness: Harness
  readonly configFile?: string | undefined
  /** `SERVER/TOOL` patterns, `*` for any */
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
  /** the name of the sentinel's own entry in the harness's configuration */
  readonly selfName?: string | undefined
}

export interface McpOptions extends SourceOptions {
  readonly logLevel: LogLevelName
}

const isHarness = (name: string): name is Harness => harnesses.some((harness) => harness === name)
const isLogLevel = (name: string): name is LogLevelName => logLevels.some((level) => level === name)

/** `--mcp-config` alone means custom (SPEC "Harness layers"); with neither there is nothing to find. */
export const harnessOf = (harness: Harness | undefined, configFile: string | undefined): Harness =>
  harness ?? (configFile === undefined ? "none" : "custom")

/**
 * The options of a well-formed `mcp-sentinel mcp …` command line, without the weight of the command-line library, which
 * an MCP host would wait for at every start. Undefined for anything else: the library then answers, with help or an error.
 */
export const fastMcpOptions = (args: ReadonlyArray<string>): McpOptions | undefined => {
  if (args[0] !== "mcp") return undefined
  const parsed = tryParse(args.slice(1))
  if (parsed === undefined) return undefined
  const {
    allow = [],
    deny = [],
    harness,
    "log-level": logLevel = "info",
    "mcp-config": configFile,
    "self-name": selfName
  } = parsed.values
  if (harness !== undefined && !isHarness(harness)) return undefined
  const level = logLevel.toLowerCase()
  if (!isLogLevel(level)) return undefined
  return { harness: harnessOf(harness, configFile), configFile, allow, deny, selfName, logLevel: level }
}

const tryParse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...args],
      strict: true,
      options: {
        harness: { type: "string" },
        "mcp-config": { type: "string" },
        allow: { type: "string", multiple: true },
        deny: { type: "string", multiple: true },
        "self-name": { type: "string" },
        "log-level": { type: "string" }
      }
    })
  } catch {
    return undefined
  }
}
