import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"

/** A pattern in which `*` stands for any text; everything else stands for itself. */
export const wildcard = (pattern: string): (text: string) => boolean => {
  const source = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join("[^]*?")
  const expression = new RegExp(`^${source}$`)
  return (text) => expression.test(text)
}

/** `SERVER/TOOL` with wildcards; a pattern without a slash is a server with all of its tools. */
export const matchesTarget = (pattern: string, { server, tool }: ToolTarget): boolean =>
  wildcard(pattern.includes("/") ? pattern : `${pattern}/*`)(`${server}/${tool}`)
