import * as Option from "effect/Option"
import type { ToolTarget } from "../ToolInvoker.js"
import type { ListedTool, ToolList } from "./Connection.js"
import type { Catalogue, ServerConfig } from "./ServerConfig.js"
import type { TaskView } from "./TaskDriver.js"

const quote = (name: string) => JSON.stringify(name)

const mostNames = 50

const listOf = (names: ReadonlyArray<string>): string => {
  const shown = names.slice(0, mostNames).map(quote).join(", ")
  return names.length > mostNames ? `${shown} and ${names.length - mostNames} more` : shown
}

export const toolNames = (list: ToolList): ReadonlyArray<string> => list.tools.map(({ name }) => name)

/** The servers that can be named, and what went wrong with finding more. */
export const knownServers = ({ problems, servers }: Catalogue): string =>
  [
    servers.length === 0
      ? "No usable server is known."
      : `Known servers: ${listOf(servers.map(({ name }) => name))}.`,
    ...problems
  ].join(" ")

const nextStep = {
  disabled: "Enable it in the harness's configuration to poll it.",
  self: "It is the sentinel itself, which cannot poll its own tools.",
  broken: "Correct that entry, then submit again."
}

export const unknownServer = (name: string, catalogue: Catalogue): string => {
  const entry = catalogue.unusable.find((one) => one.name === name)
  if (entry === undefined) return `There is no server ${quote(name)}. ${knownServers(catalogue)}`
  return `Server ${quote(name)} (${entry.source}) cannot be used: ${entry.reason.replace(/\.$/, "")}. ${
    nextStep[entry.kind]
  } ${knownServers(catalogue)}`
}

export const unknownTool = (server: string, tool: string, tools: ReadonlyArray<string>): string =>
  `Server ${quote(server)} has no tool ${quote(tool)}. ${
    tools.length === 0 ? "It has no tools at all." : `Its tools: ${listOf(tools)}.`
  }`

/** Why the server's own entry forbids a tool; undefined when it does not. */
export const ruleAgainst = (
  { disabledTools, enabledTools, name }: ServerConfig,
  tool: string
): string | undefined => {
  if (disabledTools?.includes(tool) === true) {
    return `Tool ${quote(tool)} of server ${quote(name)} is in the disabled_tools of its configuration.`
  }
  return enabledTools === undefined || enabledTools.includes(tool)
    ? undefined
    : `Tool ${quote(tool)} of server ${quote(name)} is not in the enabled_tools of its configuration, which are: ${
      enabledTools.length === 0 ? "none" : listOf(enabledTools)
    }.`
}

/** What an agent should know before it relies on polling this tool (SPEC "In one paragraph" and "mcp_sentinel_poll"). */
export const warningsFor = (
  { endpoint, name }: ServerConfig,
  tool: string,
  listed: Option.Option<ListedTool>
): ReadonlyArray<string> => {
  // a task is started once, by the sentinel, and watched where it was started
  if (Option.exists(listed, ({ taskSupport }) => taskSupport !== undefined)) return []
  const repeats = Option.exists(listed, ({ destructive, readOnly }) => destructive === true || readOnly === false)
  return [
    ...(repeats
      ? [`Tool ${quote(tool)} is not marked as read-only: each poll runs it again, with all its effects.`]
      : []),
    ...(endpoint._tag === "stdio"
      ? [
        `The sentinel runs its own, second process of server ${quote(name)}: a job that the harness's process keeps ` +
        "only in memory is invisible to it."
      ]
      : [])
  ]
}

const named = ({ server, tool }: ToolTarget): string => `Server ${quote(server)}, tool ${quote(tool)}`

/** `start` is a plain call: it is submitted once, and its result is at hand before the first poll. */
export const onlyAsTask = (call: ToolTarget): string =>
  `${
    named(call)
  } runs only as an MCP task, which "start" cannot submit. Name it as "tool" instead and leave "start" out: ` +
  "the sentinel starts the task once and waits for its result."

export const taskRefused = (message: string): string =>
  `The MCP task was not started, and is not asked for again: ${message}`

export const taskUnknown = (call: ToolTarget, message?: string): string =>
  `${named(call)}: the MCP task was asked for once and the answer was lost, so whether it runs is unknown; ` +
  `it is not asked for again${message === undefined ? "." : `: ${message}`}`

const because = (message: string): string => message === "" ? "" : `: ${message}`

/** How a task is, as a clause. */
export const taskWorking = ({ message, status, taskId = "" }: TaskView): string =>
  `MCP task ${quote(taskId)} is ${status}${because(message)}`

export const taskGone = (call: ToolTarget, { message, taskId = "" }: TaskView): string =>
  `${named(call)}: the server does not know the MCP task ${quote(taskId)} any more${because(message)}. ` +
  "It has expired, or the server was started again and kept its tasks in memory; it is not started again."

export const taskNeedsInput = ({ message, taskId = "" }: TaskView): string =>
  `MCP task ${quote(taskId)} needs input, which a sentinel cannot give (input_required). The server ${
    message === "" ? "does not say what it asks for" : `asks: ${message}`
  }. Start it with arguments that leave nothing open.`

/** Why a task brought no result: the server's status message, and the error in its result. */
export const taskFailed = ({ message, status, taskId }: TaskView, error: string): string => {
  const reasons = [...new Set([message, error])].filter((text) => text !== "")
  const who = taskId === undefined ? "the call" : `MCP task ${quote(taskId)}`
  return `${who} ${status === "cancelled" ? "was cancelled at its server" : "failed"}: ${
    reasons.length === 0 ? "the server gives no reason" : reasons.join("; ")
  }`
}
