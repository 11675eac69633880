import type { Agent, AgentRegistry } from "@deepseek-ai/dsh-agent"
import type { CallId } from "@deepseek-ai/dsh-llm"
import type { ToolExecutionToken, ToolRunContext } from "@deepseek-ai/dsh-tools"
import type { Origin } from "@gcszhn/mcp-sentinel-core/Origin"

const maxDepth = 64

/** dsh knows the owner of a subagent that runs in the foreground, and only the parent session of one in the background. */
const parentOf = (agents: AgentRegistry, child: Agent): Agent | undefined => {
  const owner = agents.list().find((candidate) => agents.isOwnedBy(child.id, candidate))
  if (owner !== undefined) return owner
  const { origin, parentSession } = child.session.header
  return origin === "subagent" && parentSession !== undefined ? agents.get(parentSession) : undefined
}

/** Whether nobody started the agent but the user. */
export const isTop = (agents: AgentRegistry, agent: Agent): boolean => parentOf(agents, agent) === undefined

/** The agent, then the one that started it, and so on to the session's root. */
const lineageOf = (agents: AgentRegistry, agent: Agent): ReadonlyArray<Agent> => {
  const lineage = [agent]
  for (let child = agent; lineage.length < maxDepth;) {
    const parent = parentOf(agents, child)
    if (parent === undefined) break
    lineage.push(parent)
    child = parent
  }
  return lineage
}

/** Who submitted a sentinel: the call's agent with its ancestors, and what a later call needs to count as nested in it. */
export class Caller {
  readonly #agents: AgentRegistry
  readonly lineage: ReadonlyArray<Agent>
  readonly parent: ToolExecutionToken
  readonly rootCallId: CallId

  constructor(agents: AgentRegistry, exec: ToolRunContext) {
    this.#agents = agents
    this.lineage = exec.agent === undefined ? [] : lineageOf(agents, exec.agent)
    this.parent = exec.token
    this.rootCallId = exec.rootCallId
  }

  /** The submitting agent, or the nearest ancestor that still lives. A session that was loaded again counts as living. */
  get live(): Agent | undefined {
    for (const agent of this.lineage) {
      const live = this.#agents.get(agent.id)
      if (live !== undefined) return live
    }
    return undefined
  }

  /** The agent at the top, whose session the user sees; undefined when it no longer lives. */
  get root(): Agent | undefined {
    const top = this.lineage.at(-1)
    return top === undefined ? undefined : this.#agents.get(top.id)
  }

  get isSubagent(): boolean {
    return this.lineage.length > 1
  }

  startedBy(agent: Agent): boolean {
    return this.lineage[0]?.id === agent.id
  }

  belongsTo(agent: Agent): boolean {
    return this.lineage.some((ancestor) => ancestor.id === agent.id)
  }
}

/** The origin that travels with a task. */
export const originOf = (agents: AgentRegistry, exec: ToolRunContext): Origin => ({
  session: exec.agent?.id,
  handle: new Caller(agents, exec)
})

export const callerOf = (origin: Origin): Caller | undefined =>
  origin.handle instanceof Caller ? origin.handle : undefined
