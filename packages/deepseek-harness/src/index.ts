import type { Context, Plugin } from "@deepseek-ai/cordis"
import type {} from "@deepseek-ai/dsh-agent"
import { defineTool, type ToolRunContext } from "@deepseek-ai/dsh-tools"
import { Sentinel } from "@gcszhn/mcp-sentinel-core/Sentinel"
import { Settings } from "@gcszhn/mcp-sentinel-core/Settings"
import { type ToolDefinition, ToolKit } from "@gcszhn/mcp-sentinel-core/ToolKit"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Schema from "effect/Schema"
import { isTop, originOf } from "./Caller.js"
import * as DshInvoker from "./DshInvoker.js"
import * as DshNotifier from "./DshNotifier.js"
import { parametersOf } from "./dsl.js"
import { isHeadless, untilNews } from "./headless.js"
import { JobList } from "./JobList.js"
import * as Log from "./log.js"
import { TaskWatch } from "./TaskWatch.js"

/** The plugin's name in dsh's diagnostics. */
export const name = "mcp-sentinel"

/** The dsh services that must be there first. */
export const inject = ["agents", "tools"]

const Options = Schema.NullishOr(Schema.Struct({ jobs: Schema.optional(Schema.Boolean) }))

/** The plugin row's `config`: `jobs: true` puts sentinels on dsh's job list. */
export const Config: NonNullable<Plugin.Base["Config"]> = Schema.standardSchemaV1(Options, {
  onExcessProperty: "error"
})

/** ms that an attach inside `run_code` may block: dsh's code runtime ends a program after 10 minutes by default. */
const codeBlock = 570_000

const services = (ctx: Context, jobs: boolean): Layer.Layer<ToolKit | TaskWatch> => {
  const own = DshNotifier.layer(ctx)
  const list = JobList.layer(ctx)
  const notifier = jobs ? JobList.notifier.pipe(Layer.provide([own, list])) : own
  const host = Layer.merge(DshInvoker.layer(ctx), notifier)
  const engine = Sentinel.layer.pipe(Layer.provide(host))
  const sentinel = jobs ? JobList.sentinel.pipe(Layer.provide([engine, list])) : engine
  return ToolKit.layer.pipe(
    Layer.provide([sentinel, host]),
    Layer.provideMerge(TaskWatch.layer),
    Layer.provide([Settings.layer, Log.layer(ctx)])
  )
}

/** dsh puts "Error: " before the message of what a tool throws. */
const failure = (text: string) => new Error(text.replace(/^Error: /, ""))

/**
 * Registers the sentinel's tools with dsh. When the plugin is disabled, reconfigured or ends with its profile, every
 * sentinel stops before anything of dsh that it uses goes away.
 */
export async function apply(ctx: Context, config: typeof Options.Type): Promise<void> {
  const runtime = ManagedRuntime.make(services(ctx, config?.jobs === true))
  const stopped = new AbortController()
  const kit = await runtime.runPromise(ToolKit)

  const call = async (tool: ToolDefinition, args: unknown, exec: ToolRunContext) => {
    const exit = await runtime.runPromiseExit(
      kit.call(tool.name, args, {
        origin: originOf(ctx.agents, exec),
        ...(exec.rootCallId === exec.callId ? {} : { maxBlock: codeBlock })
      }),
      { signal: AbortSignal.any([exec.signal, stopped.signal]) }
    )
    if (Exit.isSuccess(exit)) {
      if (exit.value.isError) throw failure(exit.value.text)
      return exit.value.text
    }
    throw failure(
      stopped.signal.aborted
        ? "mcp-sentinel was disabled or reconfigured; its sentinels have ended with it."
        : "The call was interrupted. Sentinels go on, and their notices still come."
    )
  }

  for (const tool of kit.tools) {
    ctx.tools.register(defineTool({
      name: tool.name,
      description: tool.description,
      parameters: parametersOf(tool.inputSchema),
      output: { schema: { type: "string" }, render: (_, text) => [{ type: "text", text }] },
      isConcurrencySafe: () => true,
      execute: (args, exec) => call(tool, args, exec)
    }))
  }

  ctx.on("agent/turn-stopping", async ({ agent, signal }) => {
    if (!isHeadless(ctx) || !isTop(ctx.agents, agent)) return
    await runtime.runPromiseExit(untilNews(agent), { signal: AbortSignal.any([signal, stopped.signal]) })
  })

  ctx.effect(() => () => {
    stopped.abort()
    return runtime.dispose()
  }, "mcp-sentinel")
}
