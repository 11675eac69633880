import type { ToolTarget } from "./ToolInvoker.js"

/** A server whose tools may be known. */
export interface NamedServer {
  readonly name: string
  /** undefined: not known yet */
  readonly tools?: ReadonlyArray<string> | undefined
}

/** The names under which the host shows a tool to its agent. */
export type PublicNames = (target: ToolTarget) => ReadonlyArray<string>

/** What a pair of names stands for. */
export type NameMatch =
  | { readonly _tag: "Found"; readonly target: ToolTarget }
  /** `tool` reads like a public name of `server`'s `guess`; only the list of its tools can tell */
  | { readonly _tag: "NeedsTools"; readonly server: string; readonly guess: string }
  | { readonly _tag: "Ambiguous"; readonly candidates: ReadonlyArray<ToolTarget> }
  | { readonly _tag: "UnknownServer" }
  | { readonly _tag: "UnknownTool"; readonly server: string; readonly tools: ReadonlyArray<string> }

/** `my_jobs_`, `mcp__jobs__`: what the public names of a server's tools begin with. */
const prefixes = (server: string, publicNames: PublicNames): ReadonlyArray<string> =>
  publicNames({ server, tool: "" }).filter((prefix) => prefix !== "")

const sanitised = (name: string) => name.replace(/[^a-zA-Z0-9_-]/g, "_")

const isServerName = (given: string, server: string, publicNames: PublicNames): boolean =>
  given === sanitised(server) ||
  prefixes(server, publicNames).some((prefix) => given === prefix || given === prefix.replace(/_+$/, ""))

/** The server's tools that `tool` may mean, by their lists, or by the prefix where the list is not known. */
const toolsMeant = (server: NamedServer, tool: string, publicNames: PublicNames): ReadonlyArray<string> => {
  if (server.tools?.includes(tool) === true) return [tool]
  if (server.tools !== undefined) {
    return server.tools.filter((name) =>
      sanitised(name) === tool || publicNames({ server: server.name, tool: name }).includes(tool)
    )
  }
  const rests = prefixes(server.name, publicNames).flatMap((prefix) =>
    tool.startsWith(prefix) && tool.length > prefix.length ? [tool.slice(prefix.length)] : []
  )
  return [...new Set(rests)]
}

const matchTool = (server: NamedServer, tool: string, publicNames: PublicNames): NameMatch => {
  const meant = toolsMeant(server, tool, publicNames)
  if (meant.length > 1) {
    return { _tag: "Ambiguous", candidates: meant.map((name) => ({ server: server.name, tool: name })) }
  }
  const only = meant[0]
  if (server.tools === undefined) {
    return only === undefined
      ? { _tag: "Found", target: { server: server.name, tool } }
      : { _tag: "NeedsTools", server: server.name, guess: only }
  }
  return only === undefined
    ? { _tag: "UnknownTool", server: server.name, tools: server.tools }
    : { _tag: "Found", target: { server: server.name, tool: only } }
}

/** Servers that are named by the tool's public name alone. */
const matchPublicTool = (
  tool: string,
  servers: ReadonlyArray<NamedServer>,
  publicNames: PublicNames
): NameMatch => {
  const candidates = servers.flatMap((server) =>
    server.tools?.includes(tool) === true
      ? []
      : toolsMeant(server, tool, publicNames).map((name) => ({ server: server.name, tool: name }))
  )
  const only = candidates[0]
  if (only === undefined) return { _tag: "UnknownServer" }
  if (candidates.length > 1) return { _tag: "Ambiguous", candidates }
  const known = servers.find((server) => server.name === only.server)?.tools !== undefined
  return known ? { _tag: "Found", target: only } : { _tag: "NeedsTools", server: only.server, guess: only.tool }
}

/**
 * Finds what an agent means by a server and a tool: raw names first, then the host's public or sanitised ones where the
 * match is unique (SPEC "mcp_sentinel_poll").
 */
export const matchNames = (
  target: ToolTarget,
  servers: ReadonlyArray<NamedServer>,
  publicNames: PublicNames
): NameMatch => {
  const exact = servers.find((server) => server.name === target.server)
  if (exact !== undefined) return matchTool(exact, target.tool, publicNames)
  const similar = servers.filter((server) => isServerName(target.server, server.name, publicNames))
  const only = similar[0]
  if (only === undefined) return matchPublicTool(target.tool, servers, publicNames)
  return similar.length === 1
    ? matchTool(only, target.tool, publicNames)
    : { _tag: "Ambiguous", candidates: similar.map((server) => ({ server: server.name, tool: target.tool })) }
}
