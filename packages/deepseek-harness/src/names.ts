import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import { matchNames, type NamedServer, type NameMatch, type PublicNames } from "@gcszhn/mcp-sentinel-core/ToolNames"
import { createHash } from "node:crypto"

const prefix = "mcp__"
const maxLength = 64
const hashLength = 12
const hashSuffix = /_[0-9a-f]{12}$/

const sanitise = (name: string) => name.replace(/[^A-Za-z0-9_-]/g, "_")

/**
 * The name under which dsh-mcp-client registers a server's tool: `mcp__<server>__<tool>`, and when that is too long for a
 * model or holds other characters, a cut and replaced form that ends in a hash of both names.
 */
export const publicToolName = (server: string, tool: string): string => {
  const joined = `${prefix}${server}__${tool}`
  const clean = sanitise(joined)
  if (clean === joined && clean.length <= maxLength) return clean
  const hash = createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, hashLength)
  return `${clean.slice(0, maxLength - hashLength - 1)}_${hash}`
}

const nameOf = ({ server, tool }: ToolTarget) => `${prefix}${server}__${tool}`

/** The names under which an agent may know a tool whose public name ends in `tool`: also without the hash. */
const publicForms: PublicNames = ({ server, tool }) => {
  const bare = tool.replace(hashSuffix, "")
  return bare === tool ? [nameOf({ server, tool })] : [nameOf({ server, tool }), nameOf({ server, tool: bare }), bare]
}

const bareServer = (server: string) => server.startsWith(prefix) ? server.slice(prefix.length) : server

const toolsOf = (names: ReadonlyArray<string>, server: string) => {
  const own = nameOf({ server, tool: "" })
  return names.filter((name) => name.startsWith(own)).map((name) => name.slice(own.length))
}

/** A server's name may hold `__` itself, so that the one that was asked for is looked up before public names are split. */
const serversOf = (names: ReadonlyArray<string>, asked: string): ReadonlyArray<NamedServer> => {
  const split = names.filter((name) => name.startsWith(prefix)).map((name) =>
    name.slice(prefix.length).split("__", 1)[0]
  )
  return [...new Set([asked, ...split])].flatMap((name = "") => {
    const tools = toolsOf(names, name)
    return name === "" || tools.length === 0 ? [] : [{ name, tools }]
  })
}

/**
 * Finds a tool among the names that dsh offers, by its raw name (`job.status`), its sanitised one (`job_status`), or its
 * public one (`mcp__ci__job_status_…`). The public name of a target that was found is `publicToolName` of it.
 */
export const findTool = (names: ReadonlyArray<string>, target: ToolTarget): NameMatch => {
  const server = bareServer(target.server)
  return names.includes(publicToolName(server, target.tool))
    ? { _tag: "Found", target: { server, tool: target.tool } }
    : matchNames(target, serversOf(names, server), publicForms)
}

const shown = 40

const listing = (names: ReadonlyArray<string>) =>
  names.slice(0, shown).map((name) => `\`${name}\``).join(", ") +
  (names.length > shown ? ` and ${names.length - shown} more` : "")

/** Says which MCP tools there are instead of the one that was asked for. */
export const describeKnown = (names: ReadonlyArray<string>, target: ToolTarget): string => {
  const siblings = toolsOf(names, bareServer(target.server))
  if (siblings.length > 0) return `Its tools are: ${listing(siblings)}.`
  const all = names.filter((name) => name.startsWith(prefix))
  return all.length === 0
    ? "No MCP tool is registered here: add a @deepseek-ai/dsh-mcp-client row to the profile, and give its `serverName` as `server`."
    : `The MCP tools here, as \`mcp__<server>__<tool>\`, are: ${listing(all)}.`
}
