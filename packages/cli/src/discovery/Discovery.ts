import { McpServers } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SourceOptions } from "../Options.js"
import { readConfigFile } from "./ConfigFile.js"
import { nothing } from "./Found.js"

/** The servers of the harness and of the config file, read at the first use and again on refresh. */
export const layer = ({ configFile }: SourceOptions) =>
  Layer.effect(
    McpServers,
    Effect.gen(function*() {
      const find = configFile === undefined ? Effect.succeed(nothing) : yield* Effect.map(
        Effect.context<Effect.Effect.Context<ReturnType<typeof readConfigFile>>>(),
        (context) => Effect.provide(readConfigFile(configFile), context)
      )
      const [catalogue, invalidate] = yield* Effect.cachedInvalidateWithTTL(find, "1 day")
      return { catalogue, refresh: Effect.zipRight(invalidate, catalogue) }
    })
  )
