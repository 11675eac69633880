import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
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
