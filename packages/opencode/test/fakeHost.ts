import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { type Host, HostFailure, type Prompt, type SessionInfo, type SessionMessage } from "../src/Host.js"

/** What an opencode does with the next message: answers it, only stores it, loses it, or fails. */
export type Reaction = "turn" | "store" | "lose" | HostFailure

export interface FakeHost {
  readonly service: typeof Host.Service
  readonly prompts: Effect.Effect<ReadonlyArray<Prompt & { readonly session: string }>>
}

const gone = new HostFailure({ message: "Session not found", status: 404 })

/** An opencode that reacts as a real one cannot be made to on demand; sessions by id, one reaction for each message. */
export const makeFakeHost = Effect.fnUntraced(function*(
  sessions: Readonly<Record<string, SessionInfo>>,
  reactions: ReadonlyArray<Reaction>,
  earlier: ReadonlyArray<SessionMessage> = []
) {
  const prompts = yield* Ref.make<ReadonlyArray<Prompt & { readonly session: string }>>([])
  const messages = yield* Ref.make(earlier)
  const find = (id: string) => {
    const info = sessions[id]
    return info === undefined ? gone : Effect.succeed(info)
  }
  const service: typeof Host.Service = {
    directory: "/project",
    config: Effect.succeed({}),
    mcpStatus: Effect.succeed(new Map()),
    session: find,
    messages: () => Ref.get(messages),
    busy: () => Effect.succeed(false),
    prompt: Effect.fnUntraced(function*(session, prompt) {
      const all = yield* Ref.updateAndGet(prompts, (sent) => [...sent, { ...prompt, session }])
      const reaction = reactions[all.length - 1] ?? "turn"
      if (reaction instanceof HostFailure) return yield* reaction
      if (reaction === "lose") return
      const mine: SessionMessage = { role: "user", text: prompt.text }
      const answer: ReadonlyArray<SessionMessage> = reaction === "turn" ? [{ role: "assistant", text: "ok" }] : []
      yield* Ref.update(messages, (sent) => [...sent, mine, ...answer])
    }),
    log: () => Effect.void,
    showProgress: () => Effect.void
  }
  const fake: FakeHost = { service, prompts: Ref.get(prompts) }
  return fake
})
