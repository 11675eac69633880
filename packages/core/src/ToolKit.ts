import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { compile } from "./Condition.js"
import type { Refused, TaskNotFound } from "./Errors.js"
import { withProgress } from "./internal/attachProgress.js"
import { printable } from "./internal/markdown.js"
import { monotonic } from "./internal/time.js"
import type { JsonObject } from "./Json.js"
import { Notifier } from "./Notifier.js"
import type { Origin } from "./Origin.js"
import * as Report from "./Report.js"
import { checkReferences, compile as compileSelection } from "./Selection.js"
import { Sentinel } from "./Sentinel.js"
import { isActive, type PollRequest, type TaskRecord } from "./SentinelTask.js"
import { Settings } from "./Settings.js"
import { ToolInvoker } from "./ToolInvoker.js"
import * as Tools from "./Tools.js"
import type { Progress, ToolDefinition } from "./Tools.js"

export type { Progress, ToolDefinition } from "./Tools.js"

/** What an agent reads. `structured` says the same as data. */
export interface ToolReply {
  readonly text: string
  readonly isError: boolean
  readonly structured?: JsonObject | undefined
}

export interface CallContext {
  readonly origin: Origin
  /** told at once, then at most once a second and at least every 15 s while attach blocks */
  readonly onProgress?: ((progress: Progress) => Effect.Effect<void>) | undefined
  /** the longest that this host lets a call block, in ms: attach returns shortly before it */
  readonly maxBlock?: number | undefined
}

export interface ToolKitOptions {
  /** poll takes a `notifier_id` (SPEC "mcp_sentinel_set_notifier_commands", CLI only) */
  readonly notifierId: boolean
}

/** ms before a host's limit at which attach returns by itself. */
const attachMargin = 2_000

const minInterval = 1_000
const minTimeout = 5_000

/** The sentinel's tools, the same in every harness (SPEC "The tools"). `call` never fails: what is wrong is a reply. */
export class ToolKit extends Context.Tag("@gcszhn/mcp-sentinel-core/ToolKit")<ToolKit, {
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly call: (name: string, input: unknown, context: CallContext) => Effect.Effect<ToolReply>
}>() {
  static readonly layerWith = (options: ToolKitOptions) => Layer.effect(ToolKit, Effect.suspend(() => make(options)))

  static readonly layer = ToolKit.layerWith({ notifierId: false })
}

const refusal = (message: string): ToolReply => ({ text: `Error: ${printable(message)}`, isError: true })

/** A duration below its minimum is raised, and the reply says so. */
const raised = (value: number, minimum: number): [value: number, label: string] =>
  value < minimum
    ? [minimum, `${minimum} ms (raised from ${value} ms, the minimum is ${minimum} ms)`]
    : [value, `${value} ms`]

const make = Effect.fnUntraced(function*(options: ToolKitOptions) {
  const sentinel = yield* Sentinel
  const invoker = yield* ToolInvoker
  const notifier = yield* Notifier
  const limits = yield* Settings

  const poll = Effect.fnUntraced(function*(input: unknown, { origin }: CallContext) {
    const params = yield* Tools.readPoll(options.notifierId)(input)
    const until = yield* compile(params.until, "until")
    const failWhen = params.fail_when === undefined ? undefined : yield* compile(params.fail_when, "fail_when")
    const select = params.select === undefined ? undefined : yield* compileSelection(params.select)
    if (params.start !== undefined) yield* checkReferences(params.args ?? {})
    const target = yield* invoker.resolve({ server: params.server, tool: params.tool }, origin)
    const start = params.start === undefined ? undefined : yield* invoker.resolve(
      { server: target.server, tool: params.start.tool },
      origin
    )
    const recipient = { origin, notifierId: params.notifier_id }
    const delivery = yield* notifier.accept(recipient)
    const [interval, intervalLabel] = raised(params.interval ?? 5_000, minInterval)
    const [timeout, timeoutLabel] = params.timeout === undefined || params.timeout === 0
      ? [undefined, "none"] as const
      : raised(params.timeout, minTimeout)
    const request: PollRequest = {
      server: target.server,
      tool: target.tool,
      args: params.args ?? {},
      interval,
      timeout,
      until,
      failWhen,
      maxErrors: params.max_errors ?? 3,
      select,
      start: start && { tool: start.tool, args: params.start?.args ?? {} }
    }
    const task = yield* sentinel.start(request, recipient, delivery)
    const now = yield* monotonic
    return reply(
      Report.acknowledgement(
        task,
        { interval: intervalLabel, timeout: timeoutLabel },
        [...target.warnings, delivery.advice],
        limits,
        now
      ),
      task,
      now
    )
  })

  const status = Effect.fnUntraced(function*(input: unknown, { origin }: CallContext) {
    const params = yield* Tools.readStatus(input)
    if (params.action === "list") {
      const tasks = yield* sentinel.list(origin.session)
      const now = yield* monotonic
      return {
        text: Report.list(tasks, now),
        isError: false,
        structured: { sentinels: tasks.map((task) => Report.structured(task, now)) }
      }
    }
    const task = params.action === "cancel" ? yield* sentinel.cancel(params.id) : yield* sentinel.get(params.id)
    const now = yield* monotonic
    return reply(Report.status(task, limits, yield* Clock.currentTimeMillis, now), task, now)
  })

  const attach = Effect.fnUntraced(function*(input: unknown, context: CallContext) {
    const params = yield* Tools.readAttach(input)
    const hostLimit = context.maxBlock === undefined ? Infinity : Math.max(1_000, context.maxBlock - attachMargin)
    const ownLimit = Math.min(hostLimit, limits.attachMax)
    const asked = params.timeout === undefined || params.timeout === 0 ? Infinity : params.timeout
    const wait = Math.min(asked, ownLimit)
    const { onProgress } = context
    const [first] = params.ids
    const tasks = yield* sentinel.attach(params.ids, {
      mode: params.mode,
      timeout: wait === Infinity ? undefined : wait,
      during: onProgress && (() => withProgress(sentinel.peek(first), onProgress))
    })
    const now = yield* monotonic
    const why = asked <= ownLimit
      ? `The timeout of this attach (${asked} ms) is over. What still runs goes on.`
      : "This call ends before the host would cut it. What still runs goes on: call mcp_sentinel_attach again with the same IDs."
    const [task] = tasks
    if (tasks.length > 1 || task === undefined) {
      return {
        text: Report.several(tasks, why, limits, now),
        isError: false,
        structured: { sentinels: tasks.map((task) => Report.structured(task, now)) }
      }
    }
    return reply(
      isActive(task) ? Report.stillRunning(task, why, limits, now) : Report.outcome(task, limits, now),
      task,
      now
    )
  })

  const read = Effect.fnUntraced(function*(input: unknown) {
    const params = yield* Tools.readRead(input)
    const range = { offset: params.offset, limit: params.limit ?? 5, changes: params.changes }
    const task = yield* sentinel.peek(params.id)
    const page = yield* sentinel.read(params.id, range)
    return {
      text: Report.pollLog(task, page, range),
      isError: false,
      structured: Report.structuredLog(task, page)
    }
  })

  const handlers: Record<
    string,
    (input: unknown, context: CallContext) => Effect.Effect<ToolReply, Refused | TaskNotFound>
  > = {
    [Tools.names.poll]: poll,
    [Tools.names.status]: status,
    [Tools.names.attach]: attach,
    [Tools.names.read]: read
  }

  return {
    tools: Tools.definitions(options.notifierId),
    call: (name: string, input: unknown, context: CallContext) => {
      const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined
      return handler === undefined
        ? Effect.succeed(
          refusal(`there is no tool ${JSON.stringify(name)}; there are ${Object.keys(handlers).join(", ")}`)
        )
        : handler(input, context).pipe(
          Effect.catchAll((error) => Effect.succeed(refusal(error.message))),
          Effect.catchAllDefect((defect) =>
            Effect.logError("a tool call broke", defect).pipe(
              Effect.as(
                refusal(
                  `${name} broke: ${defect instanceof Error ? defect.message : "unknown fault"}. Please report it.`
                )
              )
            )
          )
        )
    }
  }
})

const reply = (text: string, task: TaskRecord, now: number): ToolReply => ({
  text,
  isError: false,
  structured: Report.structured(task, now)
})
