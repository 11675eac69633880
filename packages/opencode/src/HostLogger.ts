import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Queue from "effect/Queue"
import type { LogEntry } from "./Host.js"
import { Host } from "./Host.js"

const levelOf = (level: LogLevel.LogLevel): LogEntry["level"] => {
  if (LogLevel.greaterThanEqual(level, LogLevel.Error)) return "error"
  if (LogLevel.greaterThanEqual(level, LogLevel.Warning)) return "warn"
  return LogLevel.greaterThanEqual(level, LogLevel.Info) ? "info" : "debug"
}

const textOf = (message: unknown): string => Array.isArray(message) ? message.map(String).join(" ") : String(message)

/** Sends Effect's logs to opencode's log. Standard output belongs to opencode, so nothing is ever written there. */
export const layer = Layer.unwrapScoped(Effect.gen(function*() {
  const host = yield* Host
  const entries = yield* Queue.sliding<LogEntry>(1_000)
  yield* Queue.take(entries).pipe(Effect.flatMap(host.log), Effect.forever, Effect.forkScoped)
  return Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ logLevel, message }) => {
      Queue.unsafeOffer(entries, { level: levelOf(logLevel), message: `mcp-sentinel: ${textOf(message)}` })
    })
  )
}))
