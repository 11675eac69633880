import type { Catalogue, ServerConfig, UnusableServer } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"

export type FoundServer = ServerConfig & { readonly source: string }
export type FoundUnusable = UnusableServer & { readonly source: string }

/** What one harness, or one file, brought. */
export interface Found extends Catalogue {
  /** the host's rule that forbids its agent this tool, as a clause that can be shown */
  readonly denies: (target: ToolTarget) => string | undefined
  /** the longest call, in ms, that the host grants the sentinel's own entry, where its configuration says so */
  readonly ownCallTimeout?: number | undefined
}

export const nothing: Found = { servers: [], unusable: [], problems: [], denies: () => undefined }

/** A discovery that brought nothing but its failure. */
export const problem = (message: string): Found => ({ ...nothing, problems: [message] })

/** Joins two findings; a name in `stronger` hides the same name in `weaker`. Both deny. */
export const overlay = (weaker: Found, stronger: Found): Found => {
  const taken = new Set([...stronger.servers, ...stronger.unusable].map(({ name }) => name))
  const free = ({ name }: { readonly name: string }) => !taken.has(name)
  return {
    servers: [...weaker.servers.filter(free), ...stronger.servers],
    unusable: [...weaker.unusable.filter(free), ...stronger.unusable],
    problems: [...weaker.problems, ...stronger.problems],
    denies: (target) => weaker.denies(target) ?? stronger.denies(target),
    ownCallTimeout: weaker.ownCallTimeout ?? stronger.ownCallTimeout
  }
}

/** Moves the entries that are mcp-sentinel to the unusable ones. */
export const skipSelf = (found: Found, selves: ReadonlyMap<string, string>): Found => ({
  ...found,
  servers: found.servers.filter(({ name }) => !selves.has(name)),
  unusable: [
    ...found.unusable.filter(({ name }) => !selves.has(name)),
    ...[...found.servers, ...found.unusable].flatMap(({ name, source }) => {
      const reason = selves.get(name)
      return reason === undefined ? [] : [{ name, kind: "self" as const, reason, source }]
    })
  ]
})
