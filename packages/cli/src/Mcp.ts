import { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import * as McpInvoker from "@gcszhn/mcp-sentinel-core/mcp/McpInvoker"
import { Sentinel } from "@gcszhn/mcp-sentinel-core/Sentinel"
import { Settings } from "@gcszhn/mcp-sentinel-core/Settings"
import { TaskStore } from "@gcszhn/mcp-sentinel-core/TaskStore"
import { ToolKit } from "@gcszhn/mcp-sentinel-core/ToolKit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Discovery from "./discovery/Discovery.js"
import { serve, type Streams } from "./McpServer.js"
import { NoNotifier } from "./NoNotifier.js"
import type { SourceOptions } from "./Options.js"

/** The engine over the servers that the harness has, with nobody to notify. */
export const engine = (options: SourceOptions) =>
  Sentinel.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(TaskStore.layerMemory, McpInvoker.layer, NoNotifier)),
    Layer.provide(ConnectionPool.layer),
    Layer.provide(Discovery.layer(options)),
    Layer.provideMerge(Settings.layer)
  )

/** `mcp-sentinel mcp`: the toolkit, served over stdio until stdin ends. */
export const mcp = (options: SourceOptions, streams: Streams) =>
  Effect.provide(serve(streams), Layer.provide(ToolKit.layer, engine(options)))
