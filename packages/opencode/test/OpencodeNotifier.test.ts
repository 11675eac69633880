import { assert, describe, it } from "@effect/vitest"
import type { NotifyFailure } from "@gcszhn/mcp-sentinel-core/Errors"
import { type Notice, Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import { TaskId } from "@gcszhn/mcp-sentinel-core/SentinelTask"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import type { SessionInfo } from "../src/Host.js"
import { Host, HostFailure } from "../src/Host.js"
import { layer } from "../src/OpencodeNotifier.js"
import { makeFakeHost, type Reaction } from "./fakeHost.js"

const main: SessionInfo = { agent: "plan", model: { providerID: "fake", modelID: "m2", variant: "high" } }

const notice = (id: string, session: string): Notice => ({
  id: TaskId.make(id),
  title: "Sentinel Complete",
  text: `## Sentinel Complete\n\n**ID:** ${id}`,
  origin: { session }
})

/** Sends notices at once and gives what opencode was sent, and how it ended for each. */
const send = Effect.fnUntraced(function*(
  notices: ReadonlyArray<Notice>,
  options: {
    readonly sessions?: Readonly<Record<string, SessionInfo>>
    readonly reactions?: ReadonlyArray<Reaction>
    readonly earlier?: Parameters<typeof makeFakeHost>[2]
  } = {}
) {
  const host = yield* makeFakeHost(options.sessions ?? { main }, options.reactions ?? ["turn"], options.earlier)
  const sending = yield* Effect.fork(
    Effect.flatMap(
      Notifier,
      ({ notify }) => Effect.forEach(notices, (one) => Effect.either(notify(one)), { concurrency: "unbounded" })
    ).pipe(
      Effect.provide(Layer.provide(layer(false), Layer.succeed(Host, host.service)))
    )
  )
  yield* TestClock.adjust("1 minute")
  return { outcomes: yield* Fiber.join(sending), prompts: yield* host.prompts }
})

const certainty = (outcome: Either.Either<void, NotifyFailure> | undefined) =>
  outcome === undefined || Either.isRight(outcome) ? "told" : outcome.left.certainty

describe("the notice", () => {
  it.effect("keeps the agent, the model and its variant", () =>
    Effect.gen(function*() {
      const { outcomes, prompts } = yield* send([notice("a", "main")])
      assert.strictEqual(certainty(outcomes[0]), "told")
      assert.deepStrictEqual(prompts.map(({ agent, model, session }) => ({ agent, model, session })), [
        { session: "main", agent: main.agent, model: main.model }
      ])
    }))

  it.effect("takes them from the last user message where the session does not tell them", () =>
    Effect.gen(function*() {
      const model = { providerID: "fake", modelID: "m1" }
      const { prompts } = yield* send([notice("a", "main")], {
        sessions: { main: {} },
        earlier: [{ role: "user", text: "go", agent: "poller", model }, { role: "assistant", text: "ok" }]
      })
      assert.strictEqual(prompts[0]?.agent, "poller")
      assert.deepStrictEqual(prompts[0]?.model, model)
    }))

  it.effect("goes to the root of a subagent's session, with the root's voice", () =>
    Effect.gen(function*() {
      const sessions = { child: { parentID: "middle", agent: "general" }, middle: { parentID: "main" }, main }
      const { prompts } = yield* send([notice("a", "child")], { sessions })
      assert.deepStrictEqual(prompts.map(({ agent, session }) => [session, agent]), [["main", "plan"]])
    }))

  it.effect("tells two ends at once in one message", () =>
    Effect.gen(function*() {
      const { outcomes, prompts } = yield* send([notice("a", "main"), notice("b", "main")])
      assert.strictEqual(prompts.length, 1)
      assert.include(prompts[0]?.text, "**ID:** a")
      assert.include(prompts[0]?.text, "**ID:** b")
      assert.deepStrictEqual(outcomes.map(certainty), ["told", "told"])
    }))
})

describe("a message that opencode accepted", () => {
  it.effect("is sent once more, unmarked, when it never got into the session", () =>
    Effect.gen(function*() {
      const { outcomes, prompts } = yield* send([notice("a", "main")], { reactions: ["lose", "turn"] })
      assert.strictEqual(prompts.length, 2)
      assert.strictEqual(prompts[1]?.text, prompts[0]?.text)
      assert.strictEqual(certainty(outcomes[0]), "told")
    }))

  it.effect("is sent once more, marked, when it is there and no turn follows", () =>
    Effect.gen(function*() {
      const { outcomes, prompts } = yield* send([notice("a", "main")], { reactions: ["store", "turn"] })
      assert.strictEqual(prompts.length, 2)
      assert.include(prompts[1]?.text, "(may be repeated)")
      assert.strictEqual(certainty(outcomes[0]), "told")
    }))

  it.effect("is given up after that", () =>
    Effect.gen(function*() {
      const { outcomes, prompts } = yield* send([notice("a", "main")], { reactions: ["store", "lose"] })
      assert.strictEqual(prompts.length, 2)
      assert.strictEqual(certainty(outcomes[0]), "gone")
    }))
})

describe("a delivery", () => {
  it.effect("ends when the session was deleted", () =>
    Effect.gen(function*() {
      const { outcomes, prompts } = yield* send([notice("a", "deleted")])
      assert.strictEqual(certainty(outcomes[0]), "gone")
      assert.deepStrictEqual(prompts, [])
    }))

  it.effect("is known to have failed when opencode refuses it", () =>
    Effect.gen(function*() {
      const refused = new HostFailure({ message: "bad request", status: 400 })
      const { outcomes } = yield* send([notice("a", "main")], { reactions: [refused] })
      assert.strictEqual(certainty(outcomes[0]), "failed")
    }))

  it.effect("asks the session when no answer came", () =>
    Effect.gen(function*() {
      const silence = new HostFailure({ message: "no answer" })
      const { outcomes, prompts } = yield* send([notice("a", "main")], { reactions: [silence, "turn"] })
      assert.strictEqual(prompts.length, 2)
      assert.strictEqual(certainty(outcomes[0]), "told")
    }))

  it.effect("is not repeated when the session shows it already", () =>
    Effect.gen(function*() {
      const shown = notice("a", "main")
      const { outcomes, prompts } = yield* send([shown], { earlier: [{ role: "user", text: `${shown.text}\n` }] })
      assert.deepStrictEqual(prompts, [])
      assert.strictEqual(certainty(outcomes[0]), "told")
    }))
})

describe("the acknowledgement", () => {
  const accept = (oneShot: boolean, session: string) =>
    Effect.gen(function*() {
      const host = yield* makeFakeHost({ main, child: { parentID: "main" } }, [])
      return yield* Effect.flatMap(Notifier, (notifier) => notifier.accept({ origin: { session } })).pipe(
        Effect.provide(Layer.provide(layer(oneShot), Layer.succeed(Host, host.service)))
      )
    })

  it.effect("steers to attach in a one-shot run, and promises a message elsewhere", () =>
    Effect.gen(function*() {
      const run = yield* accept(true, "main")
      assert.isFalse(run.notifies)
      assert.include(run.advice, "mcp_sentinel_attach")
      const serve = yield* accept(false, "main")
      assert.isTrue(serve.notifies)
      assert.notInclude(serve.advice, "attach")
      assert.include((yield* accept(false, "child")).advice, "main session")
    }))
})
