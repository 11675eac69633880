import type { Context } from "@deepseek-ai/cordis"
import type { Agent } from "@deepseek-ai/dsh-agent"
import { boundContextSummary, createUserMessage, type MessageId } from "@deepseek-ai/dsh-llm"
import { NotifyFailure } from "@gcszhn/mcp-sentinel-core/Errors"
import { coalesced, type Delivery, type Notice, Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { type Caller, callerOf } from "./Caller.js"
import { isHeadless } from "./headless.js"

type Notices = NonEmptyReadonlyArray<Notice>

/** Notices in an agent's inbox that the agent's loop has not taken out yet. */
interface Parked {
  readonly agent: Agent
  readonly notices: Notices
}

/** ms that the first end of a message waits for others */
const within = 200

/** A one-shot run waits for its top agent only, so that a resting subagent would be woken too late there. */
const readerIn = (ctx: Context) => (notice: Notice): Agent | undefined => {
  const caller = callerOf(notice.origin)
  const live = caller?.live
  return live?.status === "idle" && isHeadless(ctx) ? caller?.root ?? live : live
}

const textFor = (agent: Agent) => (notice: Notice): string => {
  const caller = callerOf(notice.origin)
  return caller === undefined || caller.startedBy(agent)
    ? notice.text
    : `${notice.text}\n\nThis sentinel was started by your subagent \`${
      caller.lineage[0]?.id
    }\`, which does not run any more.`
}

const messageOf = ({ agent, notices }: Parked) =>
  createUserMessage({
    content: [{ type: "text", text: notices.map(textFor(agent)).join("\n\n") }],
    source: {
      kind: "plugin",
      plugin: "mcp-sentinel",
      form: "notice",
      summary: boundContextSummary(notices.map(({ id, title }) => `${title}: ${id}`).join(", "))
    }
  })

const adviceFor = (ctx: Context, caller: Caller | undefined): Delivery => {
  if (caller?.live === undefined) {
    return {
      notifies: false,
      advice:
        "This call belongs to no agent, so nobody can be told of the end: use mcp_sentinel_attach, or look with mcp_sentinel_status."
    }
  }
  const told = "A notice will reach you when it ends. Do not poll meanwhile: go on with other work or end your turn."
  if (caller.isSubagent) {
    return {
      notifies: true,
      advice:
        "You are a subagent: once your own run has ended, the notice goes to the agent that started you instead. " +
        "If your answer needs the outcome, call mcp_sentinel_attach before you answer."
    }
  }
  return {
    notifies: true,
    advice: isHeadless(ctx) ? `${told} This one-shot run stays open until the sentinel has ended.` : told
  }
}

/**
 * Puts notices into the inbox of the submitting agent: an idle one is woken for a turn of its own, a busy one reads the
 * notice at its next step. When the agent is gone, its nearest living ancestor is told instead.
 */
export const layer = (ctx: Context): Layer.Layer<Notifier> =>
  Layer.scoped(
    Notifier,
    Effect.gen(function*() {
      const run = yield* FiberSet.makeRuntime<never>()
      const parked = new Map<MessageId, Parked>()
      const readerOf = readerIn(ctx)
      const keyOf = (notice: Notice) => readerOf(notice)?.id ?? ""

      const put = (entry: Parked, how: "wake" | "quietly") =>
        Effect.sync(() => {
          const message = messageOf(entry)
          parked.set(message.id, entry)
          if (how === "quietly") return entry.agent.inject(message)
          if (entry.agent.status === "idle") return entry.agent.followup(message)
          // steering joins the running turn like an injection, and wakes the agent should that turn be just over
          return entry.agent.steer(message)
        })

      /** A cancelled agent threw its inbox away, or was disposed of, before it read what was in there. */
      const putAgain = Effect.fnUntraced(function*(id: MessageId) {
        const entry = parked.get(id)
        if (entry === undefined) return
        parked.delete(id)
        yield* Effect.promise(() => entry.agent.whenIdle())
        for (const notices of Object.values(Arr.groupBy(entry.notices, keyOf))) {
          const agent = readerOf(notices[0])
          if (agent === undefined) yield* unread(notices)
          else yield* put({ agent, notices }, agent.id === entry.agent.id ? "quietly" : "wake")
        }
      })

      ctx.on("agent/inbox/claimed", ({ message }) => {
        parked.delete(message.id)
      })
      ctx.on("agent/inbox/discarded", ({ message }) => {
        if (parked.has(message.id)) run(putAgain(message.id))
      })
      ctx.on("agent/disposed", ({ agent }) => {
        for (const [id, entry] of parked) if (entry.agent === agent) run(putAgain(id))
      })

      const deliver = Effect.fnUntraced(function*(notices: Notices) {
        const agent = readerOf(notices[0])
        if (agent !== undefined) return yield* put({ agent, notices }, "wake")
        yield* unread(notices)
        return yield* new NotifyFailure({
          certainty: "gone",
          message: "the agent that started this sentinel is gone, and so is every agent above it; " +
            "mcp_sentinel_status and mcp_sentinel_read still show the outcome"
        })
      })

      return {
        accept: ({ origin }) => Effect.sync(() => adviceFor(ctx, callerOf(origin))),
        notify: yield* coalesced({ within, keyOf, deliver })
      }
    })
  )

const unread = (notices: Notices) =>
  Effect.logWarning(
    `${notices.map(({ id, title }) => `${title} (${id})`).join(", ")} reaches nobody: the agents that waited are gone`
  )
