import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { TransportFailure } from "../src/Errors.js"
import type { Json } from "../src/Json.js"
import { compile } from "../src/Selection.js"
import { Sentinel } from "../src/Sentinel.js"
import type { Invocation, Work } from "../src/ToolInvoker.js"
import { fromJson } from "../src/ToolResult.js"
import * as Engine from "./support/engine.js"

const handle = { task: 1 }

const work = (json: Json, work: Work): Effect.Effect<Invocation> =>
  Effect.succeed({ value: fromJson(json), restarted: false, work })

const going = (pause = 0, wake?: Effect.Effect<void>) =>
  work({ status: "done" }, { _tag: "Working", handle, reason: "it reads", pause, wake })

const exists = Engine.condition({ is: "exists", value: true })

const state = (id: string) =>
  Effect.flatMap(Sentinel, (sentinel) => Effect.map(sentinel.peek(id), ({ state }) => state))

describe("work behind the calls", () => {
  it.effect("is judged when it has ended, and not before", () =>
    Engine.withEngine(
      { script: (n) => n < 3 ? going() : work({ status: "done" }, { _tag: "Ended" }) },
      ({ notices }) =>
        Effect.gen(function*() {
          const task = yield* Engine.start({ until: exists })
          assert.strictEqual(task.state._tag, "Polling")
          assert.strictEqual(task.pending, "it reads")
          assert.deepStrictEqual(task.handle, handle)
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual((yield* state(task.id))._tag, "Completed")
          assert.strictEqual((yield* Ref.get(notices)).length, 1)
        })
    ))

  it.effect("whose handle is given with every later call, and that is looked at after its own pause", () =>
    Effect.gen(function*() {
      const seen = yield* Ref.make<ReadonlyArray<Json | undefined>>([])
      const script: Engine.Script = (_, call) =>
        Effect.zipRight(Ref.update(seen, (handles) => [...handles, call.handle]), going(12_000))
      yield* Engine.withEngine({ script }, () =>
        Effect.gen(function*() {
          yield* Engine.start({ interval: 5_000 })
          yield* TestClock.adjust("11999 millis")
          assert.deepStrictEqual(yield* Ref.get(seen), [undefined])
          yield* TestClock.adjust("1 millis")
          assert.deepStrictEqual(yield* Ref.get(seen), [undefined, handle])
        }))
    }))

  it.effect("that pauses shorter than the interval is looked at after the interval", () =>
    Engine.withEngine({ script: () => going(1_000) }, ({ calls }) =>
      Effect.gen(function*() {
        yield* Engine.start({ interval: 5_000 })
        yield* TestClock.adjust("4999 millis")
        assert.strictEqual(yield* Ref.get(calls), 1)
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* Ref.get(calls), 2)
      })))

  it.effect("is looked at as soon as it wakes", () =>
    Effect.gen(function*() {
      const bell = yield* Deferred.make<void>()
      const script: Engine.Script = (n) =>
        n === 1 ? going(60_000, Deferred.await(bell)) : work({ status: "done" }, { _tag: "Ended" })
      yield* Engine.withEngine({ script }, () =>
        Effect.gen(function*() {
          const task = yield* Engine.start()
          const attached = yield* Effect.fork(Engine.attach(task.id))
          yield* TestClock.adjust("1 seconds")
          yield* Deferred.succeed(bell, undefined)
          const [ended] = yield* Fiber.join(attached)
          assert.strictEqual(ended?.state._tag, "Completed")
        }))
    }))

  it.effect("that ended without what until asks for has failed, and the reason says why", () =>
    Engine.withEngine(
      { script: () => work({ stauts: "done" }, { _tag: "Ended" }) },
      () =>
        Effect.gen(function*() {
          const { state } = yield* Engine.start()
          assert.strictEqual(state._tag, "Failed")
          assert.match(
            "reason" in state ? state.reason : "",
            /completed, but until does not hold for its result: path "status" not found/
          )
        })
    ))

  it.effect("has failed by fail_when, and by its own word whatever until says", () =>
    Effect.gen(function*() {
      const byCondition = yield* Engine.withEngine(
        { script: () => work({ status: "bad" }, { _tag: "Ended" }) },
        () => Engine.start({ until: exists, failWhen: Engine.condition({ path: "status", is: "eq", value: "bad" }) })
      )
      assert.match(JSON.stringify(byCondition.state), /"Failed","reason":"fail_when holds/)
      const byItself = yield* Engine.withEngine(
        { script: () => work({ status: "done" }, { _tag: "Failed", reason: "disk full" }) },
        () => Engine.start({ until: exists })
      )
      assert.deepStrictEqual(byItself.state, { _tag: "Failed", reason: "disk full" })
    }))

  it.effect("is not shown through select before it has a result", () =>
    Engine.withEngine({ script: () => going() }, () =>
      Effect.gen(function*() {
        const task = yield* Engine.start({ select: yield* compile("pages") })
        assert.isUndefined(task.selected)
      })))

  it.effect("keeps a handle that was given before the call ended, however that ends", () =>
    Engine.withEngine({
      script: (_, { keep, server, tool }) =>
        Effect.zipRight(
          keep?.({ asked: true }) ?? Effect.void,
          Effect.fail(new TransportFailure({ server, tool, message: "lost" }))
        )
    }, () => Effect.map(Engine.start(), (task) => assert.deepStrictEqual(task.handle, { asked: true }))))

  it.effect("goes on when the wait is over, which says so", () =>
    Engine.withEngine(
      { script: () => going(), onCancel: () => Effect.dieMessage("cancelled") },
      () =>
        Effect.gen(function*() {
          const task = yield* Engine.start({ timeout: 7_000 })
          yield* TestClock.adjust("8 seconds")
          assert.match(JSON.stringify(yield* state(task.id)), /Timeout.*it reads; it was not cancelled, and may go on/)
        })
    ))

  it.effect("is looked at once more at the deadline, within its own pause too", () =>
    Engine.withEngine(
      { script: (n) => n === 1 ? going(60_000) : work({ status: "done" }, { _tag: "Ended" }) },
      () =>
        Effect.gen(function*() {
          const task = yield* Engine.start({ timeout: 7_000 })
          yield* TestClock.adjust("8 seconds")
          assert.strictEqual((yield* state(task.id))._tag, "Completed")
        })
    ))
})

describe("cancel", () => {
  const cancelled = (onCancel: NonNullable<Engine.Scene["onCancel"]>, script: Engine.Script = () => going()) =>
    Engine.withEngine({ script, onCancel }, () =>
      Effect.gen(function*() {
        const { id } = yield* Engine.start()
        const sentinel = yield* Sentinel
        const fiber = yield* Effect.fork(sentinel.cancel(id))
        yield* TestClock.adjust("3 seconds")
        return yield* Fiber.join(fiber)
      }))

  it.effect("reaches the work, by its handle", () =>
    Effect.gen(function*() {
      const seen = yield* Ref.make<ReadonlyArray<Json | undefined>>([])
      const task = yield* cancelled((call) => Ref.update(seen, (handles) => [...handles, call.handle]))
      assert.strictEqual(task.state._tag, "Cancelled")
      assert.deepStrictEqual(yield* Ref.get(seen), [handle])
    }))

  it.effect("holds though the work cannot be reached, or does not answer", () =>
    Effect.gen(function*() {
      for (
        const onCancel of [
          ({ server, tool }: { readonly server: string; readonly tool: string }) =>
            Effect.fail(new TransportFailure({ server, tool, message: "gone" })),
          () => Effect.never
        ]
      ) {
        assert.strictEqual((yield* cancelled(onCancel)).state._tag, "Cancelled")
      }
    }))

  it.effect("of a plain poll reaches nothing, nor does the end of the engine", () =>
    Effect.gen(function*() {
      yield* cancelled(() => Effect.dieMessage("cancelled"), () => Engine.value(Engine.running))
      yield* Engine.withEngine(
        { script: () => going(), onCancel: () => Effect.dieMessage("cancelled") },
        () => Engine.start()
      )
    }))
})
