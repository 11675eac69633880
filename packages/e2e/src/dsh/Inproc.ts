import { Context } from "@deepseek-ai/cordis"
import AgentRegistry, { type Agent } from "@deepseek-ai/dsh-agent"
import AgentLoop from "@deepseek-ai/dsh-agent-loop"
import CodeRuntime from "@deepseek-ai/dsh-code-runtime-worker-thread"
import JobRegistry from "@deepseek-ai/dsh-jobs-local"
import LlmRuntime, { CallId, createUserMessage } from "@deepseek-ai/dsh-llm"
import * as DeepSeek from "@deepseek-ai/dsh-llm-deepseek"
import * as McpClient from "@deepseek-ai/dsh-mcp-client"
import SessionStore, { SessionId } from "@deepseek-ai/dsh-session"
import SystemPrompt from "@deepseek-ai/dsh-system-prompt"
import * as ToolJobs from "@deepseek-ai/dsh-tool-jobs"
import ToolRuntime from "@deepseek-ai/dsh-tools"
import * as Plugin from "@gcszhn/mcp-sentinel-deepseek-harness-plugin"
import * as HostBox from "@gcszhn/mcp-sentinel-testkit/HostBox"
import type { Llm, Rule } from "@gcszhn/mcp-sentinel-testkit/Llm"
import { scriptedLlm } from "@gcszhn/mcp-sentinel-testkit/ScriptedLlm"
import * as Effect from "effect/Effect"
import { type JobServer, jobServer, temporaryFolder } from "./JobServer.js"

export type Mode = "native" | "code"

export interface WorldOptions {
  readonly rules?: ReadonlyArray<Rule>
  readonly mode?: Mode
  /** the plugin row's config */
  readonly config?: Readonly<Record<string, unknown>>
  /** where the MCP client is mounted: for all agents, or in the composition of each agent, as an agent preset does */
  readonly client?: "host" | "preset"
  /** dsh's own job list and its tools */
  readonly jobs?: boolean
}

/** One dsh in this process: its real services, adapter, agent loop and MCP client, and the plugin. */
export interface World {
  readonly ctx: Context
  readonly llm: Llm
  readonly server: JobServer
  /** what dsh's logger was told */
  readonly logs: ReadonlyArray<string>
  readonly newAgent: (
    name: string,
    parent?: Agent
  ) => Effect.Effect<{ readonly agent: Agent; readonly dispose: () => Promise<void> }>
  /** a user's message, and the wait until the agent is idle again */
  readonly say: (agent: Agent, text: string) => Effect.Effect<void>
  /** a tool call as the agent's own loop would make it */
  readonly use: (agent: Agent, tool: string, args: unknown, signal?: AbortSignal) => Effect.Effect<Used>
  readonly disposePlugin: () => Promise<void>
}

export interface Used {
  readonly isError: boolean
  readonly text: string
  readonly id: string
}

const idIn = (text: string) => /sentinel_[0-9a-f]{32}/.exec(text)?.[0] ?? ""

export const world = Effect.fn("world")(function*(options: WorldOptions = {}) {
  const home = yield* temporaryFolder("dsh-home")
  const server = yield* jobServer
  const llm = yield* scriptedLlm(options.rules ?? [])
  const logs: Array<string> = []
  const client: McpClient.Config = {
    serverName: "ci",
    transport: "stdio",
    command: server.command,
    args: [...server.args],
    env: {},
    cwd: home,
    toolCallTimeoutMs: 60_000,
    failOnStartupError: true,
    reconnect: { initialDelayMs: 200, maxDelayMs: 400, maxAttempts: 5 }
  }
  const ctx = yield* Effect.acquireRelease(
    Effect.sync(() => {
      process.env.DSH_HOME = home
      process.env.DEEPSEEK_API_KEY = "fake"
      return new Context()
    }),
    (made) => Effect.promise(async () => made.fiber.dispose())
  )
  const plugin = yield* Effect.promise(async () => {
    ctx.logger.exporter({ levels: { default: 3 }, export: (entry) => logs.push(entry.args.map(String).join(" ")) })
    await ctx.plugin(LlmRuntime)
    await ctx.plugin(SessionStore)
    await ctx.plugin(SystemPrompt, {})
    await ctx.plugin(ToolRuntime, { mode: options.mode ?? "native" })
    await ctx.plugin(AgentRegistry)
    if (options.mode === "code") await ctx.plugin(CodeRuntime, {})
    await ctx.plugin(DeepSeek, { baseURL: `${llm.origin}/v1` })
    await ctx.plugin(AgentLoop, { agents: [] })
    if (options.jobs === true) {
      await ctx.plugin(JobRegistry, {})
      await ctx.plugin(ToolJobs, {})
    }
    if (options.client !== "preset") await ctx.plugin(McpClient, client)
    return await ctx.plugin(Plugin, options.config ?? {})
  })

  const newAgent: World["newAgent"] = (name, parent) =>
    Effect.promise(() =>
      (parent?.ctx ?? ctx).agents.create({
        sessionId: SessionId(name),
        meta: { cwd: home },
        agentOptions: { provider: "deepseek-official", model: "deepseek-v4-flash" },
        setup: async (agentCtx) => {
          if (options.client === "preset") await agentCtx.plugin(McpClient, client)
        }
      })
    )

  const made: World = {
    ctx,
    llm,
    server,
    logs,
    newAgent,
    say: (agent, text) =>
      Effect.promise(async () => {
        agent.followup(createUserMessage({ content: [{ type: "text", text }], source: { kind: "user" } }))
        await agent.whenIdle()
      }),
    use: (agent, name, args, signal) =>
      Effect.promise(async (own) => {
        const result = await ctx.tools.execute({
          callId: CallId(`test-${crypto.randomUUID()}`),
          name,
          arguments: args,
          agent,
          signal: signal ?? own
        })
        const text = result.content.map((block) => block.type === "text" ? block.text : "").join("\n")
        return { isError: result.isError, text, id: idIn(text) }
      }),
    disposePlugin: async () => plugin.dispose()
  }
  return made
})

/** Waits until something is there, at most ten seconds. */
export const eventually = <A>(what: string, look: () => A | undefined | false) =>
  HostBox.eventually(
    Effect.sync(() => {
      const seen = look()
      return seen === false ? undefined : seen
    }),
    "10 seconds",
    () => `never came: ${what}`
  )
