import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { NotifyFailure } from "../src/Errors.js"
import type { Notice } from "../src/Notifier.js"
import { coalesced } from "../src/Notifier.js"
import { TaskId } from "../src/SentinelTask.js"

const notice = (id: string, session: string): Notice => ({
  id: TaskId.make(id),
  title: "Sentinel Complete",
  text: id,
  origin: { session }
})

const recording = Effect.fnUntraced(function*(outcome: Effect.Effect<void, NotifyFailure> = Effect.void) {
  const sent = yield* Ref.make<ReadonlyArray<string>>([])
  const notify = yield* coalesced({
    within: 300,
    keyOf: ({ origin }) => origin.session ?? "",
    deliver: (notices) =>
      Ref.update(sent, (all) => [...all, notices.map(({ id }) => id).join("+")]).pipe(Effect.zipRight(outcome))
  })
  return { sent, notify }
})

it.scoped("sends ends within a moment of each other as one message, and later ones as another", () =>
  Effect.gen(function*() {
    const { notify, sent } = yield* recording()
    const first = yield* Effect.fork(Effect.all([notify(notice("a", "x")), notify(notice("b", "x"))], {
      concurrency: "unbounded"
    }))
    yield* TestClock.adjust(299)
    assert.deepStrictEqual(yield* Ref.get(sent), [])
    yield* TestClock.adjust(1)
    yield* Fiber.join(first)
    const later = yield* Effect.fork(notify(notice("c", "x")))
    yield* TestClock.adjust(300)
    yield* Fiber.join(later)
    assert.deepStrictEqual(yield* Ref.get(sent), ["a+b", "c"])
  }))

it.scoped("keeps readers apart", () =>
  Effect.gen(function*() {
    const { notify, sent } = yield* recording()
    const both = yield* Effect.fork(Effect.all([notify(notice("a", "x")), notify(notice("b", "y"))], {
      concurrency: "unbounded"
    }))
    yield* TestClock.adjust(300)
    yield* Fiber.join(both)
    assert.sameMembers([...(yield* Ref.get(sent))], ["a", "b"])
  }))

it.scoped("tells every notice of a message how it went", () =>
  Effect.gen(function*() {
    const failure = new NotifyFailure({ message: "nobody there", certainty: "gone" })
    const { notify } = yield* recording(Effect.fail(failure))
    const both = yield* Effect.fork(Effect.all([
      Effect.exit(notify(notice("a", "x"))),
      Effect.exit(notify(notice("b", "x")))
    ], { concurrency: "unbounded" }))
    yield* TestClock.adjust(300)
    assert.deepStrictEqual(yield* Fiber.join(both), [Exit.fail(failure), Exit.fail(failure)])
  }))

it.scoped("still sends when whoever waited for it was interrupted", () =>
  Effect.gen(function*() {
    const { notify, sent } = yield* recording()
    const waiting = yield* Effect.fork(notify(notice("a", "x")))
    yield* TestClock.adjust(100)
    yield* Fiber.interrupt(waiting)
    yield* TestClock.adjust(200)
    assert.deepStrictEqual(yield* Ref.get(sent), ["a"])
  }))
