import type { Context } from "@deepseek-ai/cordis"
import type { Agent } from "@deepseek-ai/dsh-agent"
import { CallId } from "@deepseek-ai/dsh-llm"
import type {} from "@deepseek-ai/dsh-tools"
import { type InvokeFailure, Refused, TransportFailure } from "@gcszhn/mcp-sentinel-core/Errors"
import { type ToolCall, ToolInvoker } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import type { NameMatch } from "@gcszhn/mcp-sentinel-core/ToolNames"
import type { ToolValue } from "@gcszhn/mcp-sentinel-core/ToolResult"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { callerOf } from "./Caller.js"
import { describeKnown, findTool, publicToolName } from "./names.js"
import { interpret, isCutOff, isMissing } from "./outcome.js"

/** ms after which a call whose connection was lost is repeated once; dsh-mcp-client reconnects after 500 ms. */
const repeatAfter = 1_500

/**
 * Calls MCP tools through dsh's own tool registry, and so over the connections of its `dsh-mcp-client` rows and under its
 * policies. Each call carries the submitting agent, parent token and root call id: without the agent dsh does not see
 * tools of an agent preset, without the parent it refuses every tool in code mode.
 */
export const layer = (ctx: Context): Layer.Layer<ToolInvoker> =>
  Layer.sync(ToolInvoker, () => {
    const { tools } = ctx
    const waiting = new Map<CallId, { reached: boolean }>()
    const seenBy = new WeakMap<Agent, Set<string>>()

    ctx.on("tools/execute", (exec, next) => {
      const call = waiting.get(exec.callId)
      if (call !== undefined) call.reached = true
      return next()
    })

    const namesFor = (agent: Agent | undefined) => tools.schemas(agent).map((schema) => schema.name)

    /** The names that are there now, and those that were there at an earlier submission of the agent's. */
    const namesEver = (agent: Agent | undefined, names: ReadonlyArray<string>) => {
      const ever = new Set([...agent === undefined ? [] : seenBy.get(agent) ?? [], ...names])
      if (agent !== undefined) seenBy.set(agent, ever)
      return [...ever]
    }

    const agentOf = (call: Pick<ToolCall, "origin">) => {
      const caller = callerOf(call.origin)
      return caller?.live ?? caller?.lineage[0]
    }

    const once = (call: ToolCall): Effect.Effect<ToolValue, InvokeFailure> =>
      Effect.suspend(() => {
        const caller = callerOf(call.origin)
        const agent = agentOf(call)
        const callId = CallId(`mcp-sentinel-${globalThis.crypto.randomUUID()}`)
        const state = { reached: false }
        waiting.set(callId, state)
        return Effect.tryPromise({
          try: (signal) =>
            tools.execute({
              callId,
              name: publicToolName(call.server, call.tool),
              arguments: call.args,
              signal,
              ...(agent === undefined ? {} : { agent }),
              ...(caller === undefined ? {} : { parent: caller.parent, rootCallId: caller.rootCallId })
            }),
          catch: (error) =>
            new TransportFailure({
              server: call.server,
              tool: call.tool,
              message: `dsh took no call: ${String(error)}`
            })
        }).pipe(
          Effect.flatMap((result) => interpret({ target: call, result, reached: state.reached })),
          Effect.ensuring(Effect.sync(() => waiting.delete(callId)))
        )
      })

    return {
      resolve: Effect.fnUntraced(function*(target, origin) {
        const agent = agentOf({ origin })
        const names = namesFor(agent)
        const ever = namesEver(agent, names)
        const quoted = `\`${target.tool}\` of MCP server \`${target.server}\``
        const match = findTool(names, target)
        if (match._tag === "Found") return { ...match.target, warnings: [] }
        if (match._tag === "Ambiguous") {
          return yield* refuse(`Several tools may be meant by ${quoted}: ${choices(match)}.`)
        }
        if (findTool(namesFor(undefined), target)._tag === "Found") {
          return yield* refuse(
            `dsh keeps ${quoted} from this agent (a tool restriction). ${describeKnown(names, target)}`
          )
        }
        const before = findTool(ever, target)
        if (before._tag !== "Found") {
          return yield* refuse(`dsh offers this agent no tool ${quoted}. ${describeKnown(names, target)}`)
        }
        return {
          ...before.target,
          warnings: [`The tool ${quoted} is not registered at the moment: its server may be starting again.`]
        }
      }),
      invoke: Effect.fnUntraced(function*(call) {
        const first = yield* Effect.either(once(call))
        if (first._tag === "Right") return { value: first.right, restarted: false }
        const trouble = first.left
        if (!isCutOff(trouble) && !isMissing(trouble)) return yield* trouble
        const value = yield* Effect.delay(once(call), repeatAfter)
        return { value, restarted: isCutOff(trouble) }
      }),
      hold: () => Effect.void
    }
  })

const refuse = (message: string) => new Refused({ field: "tool", message })

const choices = ({ candidates }: Extract<NameMatch, { readonly _tag: "Ambiguous" }>) =>
  candidates.map(({ server, tool }) => `\`${tool}\` of \`${server}\``).join(", ")
