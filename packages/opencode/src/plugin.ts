import { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import * as McpInvoker from "@gcszhn/mcp-sentinel-core/mcp/McpInvoker"
import { Sentinel } from "@gcszhn/mcp-sentinel-core/Sentinel"
import { Settings } from "@gcszhn/mcp-sentinel-core/Settings"
import { TaskStore } from "@gcszhn/mcp-sentinel-core/TaskStore"
import { ToolKit } from "@gcszhn/mcp-sentinel-core/ToolKit"
import type { Plugin, PluginInput, PluginModule } from "@opencode-ai/plugin"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { Host } from "./Host.js"
import * as HostLogger from "./HostLogger.js"
import { isOneShot } from "./oneShot.js"
import * as OpencodeNotifier from "./OpencodeNotifier.js"
import * as OpencodeRules from "./OpencodeRules.js"
import * as OpencodeServers from "./OpencodeServers.js"
import { closeWithProcess } from "./ProcessEnd.js"
import { toHostTools } from "./Tools.js"

const live = (input: PluginInput) =>
  ToolKit.layer.pipe(
    Layer.provide(Sentinel.layer),
    Layer.provide([TaskStore.layerMemory, McpInvoker.layer, OpencodeNotifier.layer(isOneShot(process.argv.slice(2)))]),
    Layer.provide([ConnectionPool.layer, OpencodeRules.layer]),
    Layer.provide([OpencodeServers.layer, Settings.layer]),
    Layer.provide(HostLogger.layer),
    Layer.provideMerge(Host.layer(input))
  )

const server: Plugin = async (input) => {
  const runtime = ManagedRuntime.make(live(input))
  const { tools } = await runtime.runPromise(ToolKit)
  const forget = closeWithProcess(() => runtime.dispose())
  return {
    tool: toHostTools(tools, (effect, signal) => runtime.runPromiseExit(effect, { signal })),
    dispose: () => {
      forget()
      return runtime.dispose()
    }
  }
}

const plugin: PluginModule = { id: "mcp-sentinel", server }

export default plugin
