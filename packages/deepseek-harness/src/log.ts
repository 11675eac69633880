import type { Context } from "@deepseek-ai/cordis"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type { LogLevel } from "effect/LogLevel"

const methodOf = (level: LogLevel) => {
  switch (level._tag) {
    case "Fatal":
    case "Error":
      return "error"
    case "Warning":
      return "warn"
    case "Info":
      return "info"
    default:
      return "debug"
  }
}

/** Effect's log goes to dsh's own logger. */
export const layer = (ctx: Context): Layer.Layer<never> => {
  const log = ctx.logger("mcp-sentinel")
  const logger = Logger.make((entry) => {
    log[methodOf(entry.logLevel)]("%s", Logger.logfmtLogger.log(entry))
  })
  return Logger.replace(Logger.defaultLogger, logger) satisfies Layer.Layer<never>
}
