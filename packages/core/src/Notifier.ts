import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { NotifyFailure, Refused } from "./Errors.js"
import type { Origin } from "./Origin.js"
import type { TaskId } from "./SentinelTask.js"

/** Where a notice goes. */
export interface Recipient {
  readonly origin: Origin
  readonly notifierId?: string | undefined
}

/** The end of a task, told once. `text` is the whole Markdown message, capped and fenced (SPEC "States and notices"). */
export interface Notice extends Recipient {
  readonly id: TaskId
  readonly title: "Sentinel Complete" | "Sentinel Failed" | "Sentinel Timeout"
  readonly text: string
}

/** What a harness can promise about a notice, for the acknowledgement. */
export interface Delivery {
  /** false: nobody will be told; the agent has to attach or look */
  readonly notifies: boolean
  /** one or two sentences that tell the agent what to do now */
  readonly advice: string
}

/** How a harness tells an agent that its task has ended. */
export class Notifier extends Context.Tag("@gcszhn/mcp-sentinel-core/Notifier")<Notifier, {
  /** Says, when a task is submitted, what will happen at its end; refuses an unknown `notifierId`. */
  readonly accept: (recipient: Recipient) => Effect.Effect<Delivery, Refused>
  /** Delivers one notice. The engine retries `failed`, repeats `unknown` once (marked), and gives `gone` up. */
  readonly notify: (notice: Notice) => Effect.Effect<void, NotifyFailure>
}>() {}

export interface Coalescing {
  /** ms that the first notice of a message waits for others */
  readonly within: number
  /** notices with the same key have the same reader */
  readonly keyOf: (notice: Notice) => string
  /** delivers all the notices of one message */
  readonly deliver: (notices: NonEmptyReadonlyArray<Notice>) => Effect.Effect<void, NotifyFailure>
}

interface Batch {
  notices: NonEmptyReadonlyArray<Notice>
  readonly done: Deferred.Deferred<void, NotifyFailure>
}

/**
 * A `notify` that sends ends within a moment of each other as one message to each reader (SPEC "States and notices").
 * Every notice of a message shares its outcome. A message under way outlives the interruption of who waits for it, and
 * ends with the scope.
 */
export const coalesced = (
  { deliver, keyOf, within }: Coalescing
): Effect.Effect<(notice: Notice) => Effect.Effect<void, NotifyFailure>, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const open = new Map<string, Batch>()

    const send = (key: string, batch: Batch) =>
      Effect.sleep(within).pipe(
        Effect.zipRight(Effect.suspend(() => {
          open.delete(key)
          return deliver(batch.notices)
        })),
        Effect.onExit((exit) => Deferred.done(batch.done, exit)),
        Effect.interruptible,
        Effect.forkIn(scope)
      )

    const join = Effect.fnUntraced(function*(notice: Notice) {
      const key = keyOf(notice)
      const batch = open.get(key)
      if (batch !== undefined) {
        batch.notices = [...batch.notices, notice]
        return batch
      }
      const opened: Batch = { notices: [notice], done: yield* Deferred.make<void, NotifyFailure>() }
      open.set(key, opened)
      yield* send(key, opened)
      return opened
    }, Effect.uninterruptible)

    return (notice) => Effect.flatMap(join(notice), ({ done }) => Deferred.await(done))
  })
