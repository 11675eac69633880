import type { Context } from "@deepseek-ai/cordis"
import type { Agent } from "@deepseek-ai/dsh-agent"
import * as Effect from "effect/Effect"
import { callerOf } from "./Caller.js"
import { isSettled, TaskWatch } from "./TaskWatch.js"

/** dsh runs one task and exits as soon as its agent is idle. */
export const isHeadless = (ctx: Context): boolean => ctx.get("headlessStartup") !== undefined

/**
 * Waits until the agent has a notice to read, or neither it nor its subagents have a sentinel with anything left to tell.
 * The session's top agent waits for this before it ends a turn, and so keeps a one-shot run open (SPEC "Harness layers").
 */
export const untilNews = (agent: Agent): Effect.Effect<void, never, TaskWatch> =>
  Effect.flatMap(TaskWatch, (watch) =>
    watch.until((tasks) =>
      agent.inbox.hasPending ||
      tasks.every((task) => isSettled(task) || callerOf(task.recipient.origin)?.belongsTo(agent) !== true)
    ))
