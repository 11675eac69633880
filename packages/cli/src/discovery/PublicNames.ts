import type { ToolTarget } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import type { Harness } from "../Options.js"

/** What hosts make of a name before they show it to a model. */
export const sanitise = (name: string): string => name.replaceAll(/[^a-zA-Z0-9_-]/g, "_")

const underscored = ({ server, tool }: ToolTarget) => `${sanitise(server)}_${sanitise(tool)}`
const prefixed = ({ server, tool }: ToolTarget) => `mcp__${sanitise(server)}__${sanitise(tool)}`

/** The names under which a harness shows a tool to its agent; a harness that is not known may use either form. */
export const publicNames = (harness: Harness) => (target: ToolTarget): ReadonlyArray<string> => {
  switch (harness) {
    case "opencode":
      return [underscored(target)]
    case "codex":
    case "claude-code":
      return [prefixed(target)]
    case "custom":
    case "none":
      return [underscored(target), prefixed(target)]
  }
}
