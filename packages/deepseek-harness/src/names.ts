import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
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

/** What came of looking for a tool among the names that dsh offers. */
export type Match =
  | { readonly _tag: "Found"; readonly name: string; readonly target: ToolTarget }
  | { readonly _tag: "Ambiguous"; readonly names: ReadonlyArray<string> }
  | { readonly _tag: "Missing" }

const found = (name: string, server: string, tool: string): Match => ({ _tag: "Found", name, target: { server, tool } })

const bareServer = (server: string) => server.startsWith(prefix) ? server.slice(prefix.length) : server

/** Whether `name` is the public name of the tool whose sanitised full name is `wanted`, with or without a hash. */
const isFormOf = (name: string, wanted: string) =>
  name === wanted ||
  (hashSuffix.test(name) && name.replace(hashSuffix, "") === wanted.slice(0, maxLength - hashLength - 1))

/**
 * Finds the public name of a target whose names may be raw (`jobs.status`), sanitised (`jobs_status`), or public already
 * (`mcp__ci__jobs_status_…`). The target that comes back is found by its own name again.
 */
export const findTool = (names: ReadonlyArray<string>, target: ToolTarget): Match => {
  const server = bareServer(target.server)
  const exact = publicToolName(server, target.tool)
  if (names.includes(exact)) return found(exact, server, target.tool)
  const own = `${prefix}${server}__`
  if (target.tool.startsWith(own) && names.includes(target.tool)) {
    return found(target.tool, server, target.tool.slice(own.length))
  }
  const wanted = sanitise(`${own}${target.tool}`)
  const forms = names.filter((name) => name.startsWith(own) && isFormOf(name, wanted))
  const [only] = forms
  if (only === undefined) return { _tag: "Missing" }
  return forms.length === 1 ? found(only, server, only.slice(own.length)) : { _tag: "Ambiguous", names: forms }
}

const shown = 40

const listing = (names: ReadonlyArray<string>) =>
  names.slice(0, shown).map((name) => `\`${name}\``).join(", ") +
  (names.length > shown ? ` and ${names.length - shown} more` : "")

/** Says which MCP tools there are instead of the one that was asked for. */
export const describeKnown = (names: ReadonlyArray<string>, target: ToolTarget): string => {
  const own = `${prefix}${bareServer(target.server)}__`
  const siblings = names.filter((name) => name.startsWith(own)).map((name) => name.slice(own.length))
  if (siblings.length > 0) return `Its tools are: ${listing(siblings)}.`
  const all = names.filter((name) => name.startsWith(prefix))
  return all.length === 0
    ? "No MCP tool is registered here: add a @deepseek-ai/dsh-mcp-client row to the profile, and give its `serverName` as `server`."
    : `The MCP tools here, as \`mcp__<server>__<tool>\`, are: ${listing(all)}.`
}
