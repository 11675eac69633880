import { compile } from "@gcszhn/mcp-sentinel-core/Condition"
import { Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import { monotonic } from "@gcszhn/mcp-sentinel-core/internal/time"
import { isJsonObject, type JsonObject } from "@gcszhn/mcp-sentinel-core/Json"
import * as Report from "@gcszhn/mcp-sentinel-core/Report"
import { Sentinel } from "@gcszhn/mcp-sentinel-core/Sentinel"
import type { PollRequest, TaskRecord } from "@gcszhn/mcp-sentinel-core/SentinelTask"
import { ToolInvoker } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import { jsonArgument } from "./jsonArgument.js"
import type { LiveLine } from "./LiveLine.js"

export interface WaitOptions {
  readonly server: string
  readonly tool: string
  readonly args: string
  readonly until: string
  readonly failWhen?: string | undefined
  /** ms */
  readonly interval: number
  /** ms; 0 = none */
  readonly timeout: number
  readonly maxErrors: number
  readonly json: boolean
}

/** Exit codes as of `timeout(1)`; 130 for an interrupt is the runtime's. */
const exitCodes = { Polling: 1, Completed: 0, Failed: 1, Error: 1, Timeout: 124, Cancelled: 130 } as const

const objectArgument = (name: string, text: string): Either.Either<JsonObject, Refused> =>
  Either.flatMap(jsonArgument(name, text), (value) =>
    isJsonObject(value)
      ? Either.right(value)
      : Either.left(new Refused({ message: `${name} must be a JSON object such as {"id": 1}`, field: name })))

const requestOf = (options: WaitOptions) =>
  Either.gen(function*() {
    const request: Omit<PollRequest, "server" | "tool"> = {
      args: yield* objectArgument("--args", options.args),
      until: yield* compile(yield* jsonArgument("--until", options.until), "--until"),
      failWhen: options.failWhen === undefined
        ? undefined
        : yield* compile(yield* jsonArgument("--fail-when", options.failWhen), "--fail-when"),
      interval: options.interval,
      timeout: options.timeout === 0 ? undefined : options.timeout,
      maxErrors: options.maxErrors
    }
    return request
  })

const recipient = { origin: {} }

const asJson = (task: TaskRecord, now: number): string =>
  JSON.stringify({ ...Report.structured(task, now), value: task.last?.value?.text })

/**
 * `mcp-sentinel wait`: polls in the foreground, shows how it goes, and prints the last value on stdout. Gives the exit
 * code: 0 completed, 1 failed or error, 2 a wrong command line, 124 timeout.
 */
export const wait = Effect.fn("wait")(
  function*(options: WaitOptions, live: LiveLine) {
    const sentinel = yield* Sentinel
    const invoker = yield* ToolInvoker
    const request = yield* requestOf(options)
    const target = yield* invoker.resolve({ server: options.server, tool: options.tool }, recipient.origin)
    const task = yield* sentinel.start({ ...request, ...target }, recipient, { notifies: false, advice: "" })
    const [ended = task] = yield* sentinel.attach([task.id], {
      mode: "all",
      during: () => show(sentinel.peek(task.id), live)
    })
    yield* live.clear
    const now = yield* monotonic
    const value = ended.last?.value?.text
    if (options.json) yield* Console.log(asJson(ended, now))
    else if (value !== undefined) yield* Console.log(value)
    const why = "reason" in ended.state ? `: ${ended.state.reason}` : ""
    yield* Console.error(`${Report.statusOf(ended)} after ${ended.polls} polls${why}`)
    return exitCodes[ended.state._tag]
  },
  Effect.catchTags({
    Refused: ({ message }) => Effect.as(Console.error(`Error: ${message}`), 2),
    TaskNotFound: ({ message }) => Effect.as(Console.error(`Error: ${message}`), 1)
  })
)

/** On a terminal one line that changes every 200 ms; else a line whenever a poll has been made. */
const show = <E>(current: Effect.Effect<TaskRecord, E>, live: LiveLine): Effect.Effect<never> =>
  Effect.gen(function*() {
    const shown = yield* Ref.make(-1)
    const once = Effect.gen(function*() {
      const task = yield* current
      const text = Report.progress(task, yield* monotonic)
      const before = yield* Ref.getAndSet(shown, task.polls)
      if (live.isTerminal || before !== task.polls) yield* live.show(text)
    })
    yield* Effect.repeat(Effect.ignore(once), Schedule.spaced("200 millis"))
    return yield* Effect.never
  })
