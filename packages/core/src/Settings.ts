import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

/** Limits of the process, from the `SENTINEL_` variables (SPEC "Environment"). `Infinity` means unlimited or never. */
export interface Limits {
  /** poll log entries kept for one task; older ones are dropped first */
  readonly maxPollLog: number
  /** ms after which a finished task is forgotten */
  readonly taskTtl: number
  /** bytes that the poll logs of the whole process may take; beyond it the largest logs lose their oldest entries */
  readonly maxLogBytes: number
  /** characters kept of one value; conditions always judge the whole value */
  readonly maxValueChars: number
  /** tasks known at once; finished ones make room, and when all are active a new one is refused */
  readonly maxTasks: number
  /** characters of a value that a notice, an attach or a status shows */
  readonly maxNoticeChars: number
  /** ms that an attach blocks at most before it asks to be called again */
  readonly attachMax: number
}

/** SPEC "Environment": positive integers only; 0, negative and non-numeric mean unlimited. Unset means `byDefault`. */
const limit = (name: string, byDefault: number): Config.Config<number> =>
  Config.option(Config.string(name)).pipe(
    Config.map(Option.match({
      onNone: () => byDefault,
      onSome: (text) => /^\s*\+?0*[1-9]\d*\s*$/.test(text) ? Number(text) : Infinity
    }))
  )

const limits: Config.Config<Limits> = Config.all({
  maxPollLog: limit("SENTINEL_MAX_POLL_LOG", Infinity),
  taskTtl: limit("SENTINEL_TASK_TTL_MS", Infinity),
  maxLogBytes: limit("SENTINEL_MAX_LOG_BYTES", 64 * 1024 * 1024),
  maxValueChars: limit("SENTINEL_MAX_VALUE_CHARS", 1024 * 1024),
  maxTasks: limit("SENTINEL_MAX_TASKS", 10_000),
  maxNoticeChars: limit("SENTINEL_MAX_NOTICE_CHARS", 4_000),
  attachMax: limit("SENTINEL_ATTACH_MAX_MS", Infinity)
})

export class Settings extends Context.Tag("@gcszhn/mcp-sentinel-core/Settings")<Settings, Limits>() {
  /** Reads the variables through Effect's ConfigProvider; a strange value is never an error. */
  static readonly layer = Layer.effect(Settings, Effect.orDie(limits))

  /** The defaults, with what a test or an embedder wants otherwise. */
  static readonly layerOf = (overrides: Partial<Limits>) =>
    Layer.effect(Settings, Effect.map(Effect.orDie(limits), (settings) => ({ ...settings, ...overrides })))
}
