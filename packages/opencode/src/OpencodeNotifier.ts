import { NotifyFailure } from "@gcszhn/mcp-sentinel-core/Errors"
import type { Delivery, Notice } from "@gcszhn/mcp-sentinel-core/Notifier"
import { coalesced, Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { HostFailure, Prompt, SessionInfo } from "./Host.js"
import { Host } from "./Host.js"

/** parents that are followed from a subagent's session to the session of the user */
const maxDepth = 32

/** ms within which a turn has to be seen after a message was accepted */
const turnMillis = 8_000
const lookEvery = 250

/** ms within which ends go out as one message */
const together = 300

const sessionOf = (notice: Notice): string => notice.origin.session ?? ""

/** The session that its user talks to, from a subagent's session up. */
const rootOf = (
  id: string,
  depth = 0
): Effect.Effect<{ readonly id: string; readonly info: SessionInfo }, HostFailure, Host> =>
  Effect.flatMap(Host, (host) => host.session(id)).pipe(
    Effect.flatMap((info) =>
      info.parentID === undefined || depth >= maxDepth
        ? Effect.succeed({ id, info })
        : rootOf(info.parentID, depth + 1)
    )
  )

/** A message without agent and model would move the session to the default agent for good. */
const voiceOf = Effect.fnUntraced(function*(id: string, info: SessionInfo) {
  if (info.agent !== undefined && info.model !== undefined) return { agent: info.agent, model: info.model }
  const host = yield* Host
  const last = (yield* host.messages(id)).findLast((message) => message.role === "user")
  return { agent: info.agent ?? last?.agent, model: info.model ?? last?.model }
})

/** What became of a message that opencode accepted. */
type Fate = "turn" | "stored" | "absent"

const fateOf = Effect.fnUntraced(function*(id: string, text: string) {
  const host = yield* Host
  const [messages, busy] = yield* Effect.all([host.messages(id), host.busy(id)])
  const mine = messages.findLastIndex((message) => message.role === "user" && message.text.includes(text))
  const fate: Fate = mine < 0 ?
    "absent" :
    busy || messages.slice(mine).some((message) => message.role === "assistant")
    ? "turn"
    : "stored"
  return fate
})

/** Looks until a turn is seen; the last look decides. */
const watch = (id: string, text: string, looks = turnMillis / lookEvery): Effect.Effect<Fate, HostFailure, Host> =>
  Effect.flatMap(fateOf(id, text), (fate) =>
    fate === "turn" || looks <= 0
      ? Effect.succeed(fate)
      : Effect.delay(Effect.suspend(() => watch(id, text, looks - 1)), lookEvery))

const failureOf = (certainty: NotifyFailure["certainty"]) => (failure: HostFailure) =>
  new NotifyFailure({
    message: failure.status === 404 ? "the session no longer exists" : failure.message,
    certainty: failure.status === 404 ? "gone" : certainty
  })

/** Sends once, and tells what became of it. Without an answer it is the session that knows whether it arrived. */
const send = Effect.fnUntraced(function*(id: string, prompt: Prompt) {
  const host = yield* Host
  yield* host.prompt(id, prompt).pipe(
    Effect.catchIf((failure) => failure.status === undefined, () => Effect.void),
    Effect.mapError(failureOf("failed"))
  )
  return yield* Effect.mapError(watch(id, prompt.text), failureOf("unknown"))
})

const repeated = (text: string): string => `${text}\n\n(may be repeated)`

/** The notices that the session does not show yet: a try whose outcome stayed unknown may have arrived. */
const untold = Effect.fnUntraced(function*(id: string, notices: ReadonlyArray<Notice>) {
  const host = yield* Host
  const told = (yield* host.messages(id)).filter(({ role }) => role === "user")
  return notices.filter((notice) =>
    !told.some(({ text }) => text.includes(notice.id) && text.includes(`## ${notice.title}`))
  )
})

/**
 * Wakes the session's agent with its own agent and model. opencode accepts a message (204) before it is stored, and even
 * when no turn follows, so the session is looked at, and the message sent once more when no turn starts.
 */
export const deliver = Effect.fnUntraced(function*(notices: NonEmptyReadonlyArray<Notice>) {
  const root = yield* Effect.mapError(rootOf(sessionOf(notices[0])), failureOf("failed"))
  const due = yield* Effect.mapError(untold(root.id, notices), failureOf("failed"))
  if (due.length === 0) return
  const voice = yield* Effect.mapError(voiceOf(root.id, root.info), failureOf("failed"))
  const text = due.map((notice) => notice.text).join("\n\n")
  const first = yield* send(root.id, { ...voice, text })
  if (first === "turn") return
  yield* Effect.logWarning(`opencode started no turn for the notice of ${due.map(({ id }) => id).join(", ")}; again`)
  const second = yield* send(root.id, { ...voice, text: first === "stored" ? repeated(text) : text })
  if (second === "turn") return
  return yield* new NotifyFailure({ message: "opencode took the notice twice and started no turn", certainty: "gone" })
})

const attached: Delivery = {
  notifies: false,
  advice: "This is a one-shot run (`opencode run`): it ends with this turn, and nobody can be told afterwards. Call "
    + "mcp_sentinel_attach with the ID now, before you end your turn; it returns when the sentinel ends."
}

const toRoot: Delivery = {
  notifies: true,
  advice: "You are a subagent: the end is told to the main session, not to you. If your own answer depends on it, call "
    + "mcp_sentinel_attach with the ID; otherwise hand the ID back in your answer."
}

const toSession: Delivery = {
  notifies: true,
  advice:
    "You will get a message in this session when it ends. Do not poll, sleep or check in between: go on with other "
    + "work, or end your turn now."
}

/** Notices as messages in the session that asked; `oneShot` when opencode ends together with its turn. */
export const layer = (oneShot: boolean) =>
  Layer.scoped(
    Notifier,
    Effect.gen(function*() {
      const context = yield* Effect.context<Host>()
      const notify = yield* coalesced({
        within: together,
        keyOf: sessionOf,
        deliver: (notices) => Effect.provide(deliver(notices), context)
      })
      return {
        notify,
        accept: ({ origin }) =>
          oneShot || origin.session === undefined
            ? Effect.succeed(attached)
            : Effect.flatMap(Host, (host) => host.session(origin.session ?? "")).pipe(
              Effect.map(({ parentID }) => parentID === undefined ? toSession : toRoot),
              Effect.orElseSucceed(() => toSession),
              Effect.provide(context)
            )
      }
    })
  )
