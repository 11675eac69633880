import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { FatalFailure, NotifyFailure, ToolFailure, TransportFailure } from "../src/Errors.js"
import { Sentinel } from "../src/Sentinel.js"
import { TaskStore } from "../src/TaskStore.js"
import { fromJson, fromText } from "../src/ToolResult.js"
import * as Engine from "./support/engine.js"

const { attach, condition, finished, replies, request, running, start, value, withEngine } = Engine

const transport = (message: string, retryAfter?: number) =>
  Effect.fail(new TransportFailure({ server: "jobs", tool: "get_status", message, retryAfter }))

const toolError = (text: string) =>
  Effect.fail(new ToolFailure({ server: "jobs", tool: "get_status", message: text, value: fromText(text) }))

const statusAfter = (id: string, duration: Duration.DurationInput) =>
  Effect.zipRight(TestClock.adjust(duration), Effect.flatMap(Sentinel, (sentinel) => sentinel.peek(id)))

describe("polling", () => {
  it.effect("looks at once, spaces the looks by the interval from the end of a call, and tells once", () =>
    withEngine(
      { script: (n) => Effect.delay(value(n === 3 ? finished : running), "100 millis") },
      (world) =>
        Effect.gen(function*() {
          const starting = yield* Effect.fork(start())
          yield* TestClock.adjust("100 millis")
          const task = yield* Fiber.join(starting)
          assert.strictEqual(task.state._tag, "Polling")
          assert.strictEqual(task.polls, 1)
          assert.match(task.pending, /running/)
          assert.strictEqual((yield* statusAfter(task.id, "5099 millis")).polls, 1)
          assert.strictEqual((yield* statusAfter(task.id, "1 millis")).polls, 2)
          const ended = yield* statusAfter(task.id, "5100 millis")
          assert.strictEqual(ended.state._tag, "Completed")
          assert.strictEqual(ended.polls, 3)
          yield* TestClock.adjust("1 hour")
          const notices = yield* Ref.get(world.notices)
          assert.strictEqual(notices.length, 1)
          assert.match(notices[0]?.text ?? "", /^## Sentinel Complete\n\*\*ID:\*\* sentinel_[0-9a-f]{32}\n/)
          assert.strictEqual(yield* Ref.get(world.calls), 3)
        })
    ))

  it.effect("an end at the first look is told by the reply, not by a notice", () =>
    withEngine({ script: replies(finished) }, (world) =>
      Effect.gen(function*() {
        const task = yield* start()
        assert.strictEqual(task.state._tag, "Completed")
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* Ref.get(world.notices), [])
        assert.strictEqual((yield* (yield* Sentinel).get(task.id)).delivery._tag, "Told")
      })))

  it.effect("a slow first call delays the reply by 750 ms at most", () =>
    withEngine({ script: () => Effect.delay(value(finished), "10 seconds") }, (world) =>
      Effect.gen(function*() {
        const starting = yield* Effect.fork(start())
        yield* TestClock.adjust("749 millis")
        assert.strictEqual((yield* Fiber.poll(starting))._tag, "None")
        yield* TestClock.adjust("1 millis")
        const task = yield* Fiber.join(starting)
        assert.strictEqual(task.polls, 0)
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* Ref.get(world.notices)).length, 1)
      })))

  it.effect("a call slower than the interval never overlaps", () =>
    withEngine(
      { script: (n) => Effect.delay(value(n === 10 ? finished : running), "5 seconds") },
      (world) =>
        Effect.gen(function*() {
          const starting = yield* Effect.fork(start({ interval: 1_000 }))
          yield* TestClock.adjust("2 minutes")
          const task = yield* Fiber.join(starting)
          assert.strictEqual((yield* statusAfter(task.id, 0)).state._tag, "Completed")
          assert.strictEqual(yield* Ref.get(world.maxInFlight), 1)
          assert.strictEqual(yield* Ref.get(world.calls), 10)
        })
    ))

  it.effect("fail_when is looked at before until", () =>
    withEngine({ script: replies(finished) }, () =>
      Effect.gen(function*() {
        const task = yield* start({ failWhen: condition({ path: "n", is: "eq", value: 1 }) })
        assert.strictEqual(task.state._tag, "Failed")
      })))

  it.effect("a start that is interrupted before it answers leaves nothing behind", () =>
    withEngine({ script: () => Effect.never }, (world) =>
      Effect.gen(function*() {
        const starting = yield* Effect.fork(start())
        yield* TestClock.adjust("100 millis")
        yield* Fiber.interrupt(starting)
        assert.strictEqual(yield* Ref.get(world.inFlight), 0)
        assert.deepStrictEqual(yield* (yield* Sentinel).list(), [])
      })))
})

describe("timeout", () => {
  it.effect("aborts a call that hangs", () =>
    withEngine({ script: (n) => n === 1 ? value(running) : Effect.never }, (world) =>
      Effect.gen(function*() {
        const task = yield* start({ timeout: 12_000 })
        const before = yield* statusAfter(task.id, "11999 millis")
        assert.strictEqual(before.state._tag, "Polling")
        assert.strictEqual(yield* Ref.get(world.inFlight), 1)
        const ended = yield* statusAfter(task.id, "1 millis")
        assert.strictEqual(ended.state._tag, "Timeout")
        assert.strictEqual(yield* Ref.get(world.inFlight), 0)
        assert.match((yield* Ref.get(world.notices))[0]?.text ?? "", /^## Sentinel Timeout/)
      })))

  it.effect("takes a last look when the deadline comes during a pause", () =>
    withEngine({ script: (n) => value(n === 3 ? finished : running) }, (world) =>
      Effect.gen(function*() {
        const task = yield* start({ timeout: 7_000 })
        assert.strictEqual((yield* statusAfter(task.id, "6999 millis")).polls, 2)
        const ended = yield* statusAfter(task.id, "1 millis")
        assert.strictEqual(ended.state._tag, "Completed")
        assert.strictEqual((yield* Ref.get(world.notices)).length, 1)
      })))

  it.effect("a last look that does not hold ends as timeout with the reason, one that hangs is cut after 2 s", () =>
    Effect.gen(function*() {
      for (const hangs of [false, true]) {
        yield* withEngine(
          { script: (n) => n === 3 && hangs ? Effect.never : value(running) },
          (world) =>
            Effect.gen(function*() {
              const task = yield* start({ timeout: 7_000 })
              const ended = yield* statusAfter(task.id, "9 seconds")
              assert.strictEqual(ended.state._tag, "Timeout")
              if (ended.state._tag === "Timeout") assert.match(ended.state.reason, /running/)
              assert.strictEqual(yield* Ref.get(world.calls), 3)
              assert.isAtMost((ended.endedMono ?? 0) - ended.startedMono, 9_000)
            })
        )
      }
    }))

  it.effect("no last look while Retry-After forbids it", () =>
    withEngine(
      { script: (n) => n === 1 ? value(running) : transport("429", 60_000) },
      (world) =>
        Effect.gen(function*() {
          const task = yield* start({ timeout: 20_000, maxErrors: 0 })
          const ended = yield* statusAfter(task.id, "20 seconds")
          assert.strictEqual(ended.state._tag, "Timeout")
          assert.strictEqual(yield* Ref.get(world.calls), 2)
        })
    ))
})

describe("failed calls", () => {
  it.effect("fatal ends at once and the reply tells it", () =>
    withEngine({
      script: () => Effect.fail(new FatalFailure({ server: "jobs", tool: "x", message: "unknown tool x" }))
    }, (world) =>
      Effect.gen(function*() {
        const task = yield* start()
        assert.deepStrictEqual(task.state, { _tag: "Error", reason: "unknown tool x" })
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* Ref.get(world.notices), [])
      })))

  it.effect("a tool that has only ever answered with errors is waited for", () =>
    withEngine({ script: (n) => n < 10 ? toolError("ENOENT") : value(finished) }, () =>
      Effect.gen(function*() {
        const task = yield* start()
        assert.match(task.pending, /ENOENT/)
        assert.strictEqual((yield* statusAfter(task.id, "45 seconds")).state._tag, "Completed")
      })))

  it.effect("after a good value tool errors count, and a good value resets the count", () =>
    withEngine(
      { script: (n) => [1, 4].includes(n) ? value(running) : toolError(`boom ${n}`) },
      () =>
        Effect.gen(function*() {
          const task = yield* start()
          assert.strictEqual((yield* statusAfter(task.id, "10 seconds")).consecutiveErrors, 2)
          assert.strictEqual((yield* statusAfter(task.id, "5 seconds")).consecutiveErrors, 0)
          const ended = yield* statusAfter(task.id, "15 seconds")
          assert.strictEqual(ended.state._tag, "Error")
          if (ended.state._tag === "Error") assert.match(ended.state.reason, /3 consecutive calls failed.*boom 7/)
        })
    ))

  it.effect("the value of a tool error is offered to fail_when and until", () =>
    withEngine({
      script: () =>
        Effect.fail(
          new ToolFailure({ server: "jobs", tool: "t", message: "failed", value: fromJson({ status: "failed" }) })
        )
    }, () =>
      Effect.gen(function*() {
        const failed = yield* start({ failWhen: condition({ path: "status", is: "eq", value: "failed" }) })
        assert.strictEqual(failed.state._tag, "Failed")
        const completed = yield* start({ until: condition({ path: "status", is: "eq", value: "failed" }) })
        assert.strictEqual(completed.state._tag, "Completed")
      })))

  it.effect("transport failures back off, honour Retry-After, and give up at max_errors", () =>
    withEngine(
      { script: (n) => n === 1 ? value(running) : transport("gone", n === 2 ? 30_000 : undefined) },
      (world) =>
        Effect.gen(function*() {
          const task = yield* start({ interval: 1_000 })
          yield* TestClock.adjust("1 seconds")
          assert.strictEqual(yield* Ref.get(world.calls), 2)
          yield* TestClock.adjust("29999 millis")
          assert.strictEqual(yield* Ref.get(world.calls), 2)
          yield* TestClock.adjust("1 millis")
          assert.strictEqual(yield* Ref.get(world.calls), 3)
          const ended = yield* statusAfter(task.id, "2 seconds")
          assert.strictEqual(ended.state._tag, "Error")
          assert.strictEqual(yield* Ref.get(world.calls), 4)
        })
    ))

  it.effect("max_errors 0 never gives up, and the pauses grow to 60 s", () =>
    withEngine({ script: () => transport("gone") }, (world) =>
      Effect.gen(function*() {
        const task = yield* start({ interval: 1_000, maxErrors: 0 })
        yield* TestClock.adjust("10 minutes")
        const calls = yield* Ref.get(world.calls)
        assert.isAbove(calls, 10)
        assert.isBelow(calls, 25)
        assert.strictEqual((yield* statusAfter(task.id, 0)).state._tag, "Polling")
      })))

  it.effect("a defect in the invoker ends the task as error instead of silencing it", () =>
    withEngine(
      { script: (n) => n === 1 ? value(running) : Effect.dieMessage("broken invoker") },
      (world) =>
        Effect.gen(function*() {
          const task = yield* start()
          const ended = yield* statusAfter(task.id, "5 seconds")
          assert.strictEqual(ended.state._tag, "Error")
          assert.match((yield* Ref.get(world.notices))[0]?.text ?? "", /broken invoker/)
        })
    ))
})

describe("cancel", () => {
  it.effect("interrupts a call that would have matched; the task stays cancelled and sends nothing", () =>
    withEngine(
      { script: (n) => n === 1 ? value(running) : Effect.delay(value(finished), "1 seconds") },
      (world) =>
        Effect.gen(function*() {
          const sentinel = yield* Sentinel
          const task = yield* start()
          yield* TestClock.adjust("5500 millis")
          assert.strictEqual(yield* Ref.get(world.inFlight), 1)
          assert.strictEqual((yield* sentinel.cancel(task.id)).state._tag, "Cancelled")
          assert.strictEqual(yield* Ref.get(world.inFlight), 0)
          yield* TestClock.adjust("1 hour")
          assert.strictEqual((yield* sentinel.get(task.id)).state._tag, "Cancelled")
          assert.deepStrictEqual(yield* Ref.get(world.notices), [])
        })
    ))

  it.effect("of an ended task changes nothing", () =>
    withEngine({ script: replies(finished) }, () =>
      Effect.gen(function*() {
        const task = yield* start()
        assert.strictEqual((yield* (yield* Sentinel).cancel(task.id)).state._tag, "Completed")
      })))

  it.effect("wakes those who attached", () =>
    withEngine({ script: replies(running) }, () =>
      Effect.gen(function*() {
        const task = yield* start()
        const waiting = yield* Effect.fork(attach(task.id))
        yield* TestClock.adjust("1 seconds")
        yield* (yield* Sentinel).cancel(task.id)
        assert.strictEqual((yield* Fiber.join(waiting))[0]?.state._tag, "Cancelled")
      })))

  it.live("300 rounds against completion: one end, seen alike by all, and one notice at most", () =>
    Effect.gen(function*() {
      const round = (early: boolean) =>
        Effect.flatMap(
          Deferred.make<void>(),
          (gate) =>
            withEngine({ script: () => Effect.zipRight(Deferred.await(gate), value(finished)) }, (world) =>
              Effect.gen(function*() {
                const sentinel = yield* Sentinel
                const starting = yield* Effect.fork(start())
                yield* Effect.repeat(sentinel.list(), {
                  until: (tasks) =>
                    tasks.length === 1
                })
                const [task] = yield* sentinel.list()
                const id = task?.id ?? ""
                const complete = Deferred.succeed(gate, undefined)
                const hesitate = Effect.repeatN(Effect.yieldNow(), Math.floor(Math.random() * 6))
                const cancel = sentinel.cancel(id)
                const [cancelled] = yield* Effect.all(
                  early
                    ? [cancel, Effect.zipRight(hesitate, complete)] as const
                    : [Effect.zipRight(hesitate, cancel), complete] as const,
                  { concurrency: "unbounded" }
                )
                const started = yield* Fiber.join(starting)
                const [attached] = yield* attach(id)
                assert.strictEqual(cancelled.state._tag, attached?.state._tag)
                assert.strictEqual(started.state._tag, attached?.state._tag)
                yield* Effect.sleep(1)
                assert.isAtMost((yield* Ref.get(world.notices)).length, 1)
                return attached?.state._tag
              }))
        )
      const ends = yield* Effect.forEach(Array.from({ length: 300 }, (_, n) => n % 2 === 0), round)
      const cancelled = ends.filter((end) => end === "Cancelled").length
      const completed = ends.filter((end) => end === "Completed").length
      assert.strictEqual(cancelled + completed, 300)
      assert.isAtLeast(cancelled, 60)
      assert.isAtLeast(completed, 60)
    }))
})

describe("attach", () => {
  it.effect("returns the outcome and suppresses the notice", () =>
    withEngine({ script: replies(running, finished) }, (world) =>
      Effect.gen(function*() {
        const task = yield* start()
        const waiting = yield* Effect.fork(attach(task.id))
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual((yield* Fiber.join(waiting))[0]?.state._tag, "Completed")
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* Ref.get(world.notices), [])
        assert.strictEqual((yield* (yield* Sentinel).peek(task.id)).delivery._tag, "Told")
      })))

  it.effect("a timeout leaves the sentinel and its notice alone", () =>
    withEngine({ script: replies(running, running, finished) }, (world) =>
      Effect.gen(function*() {
        const task = yield* start()
        const waiting = yield* Effect.fork(attach(task.id, 3_000))
        yield* TestClock.adjust("3 seconds")
        assert.strictEqual((yield* Fiber.join(waiting))[0]?.state._tag, "Polling")
        yield* TestClock.adjust("7 seconds")
        assert.strictEqual((yield* Ref.get(world.notices)).length, 1)
      })))

  it.effect("an interrupted attach does not count, even beside one that times out", () =>
    withEngine({ script: replies(running, finished) }, (world) =>
      Effect.gen(function*() {
        const task = yield* start()
        const waiting = yield* Effect.fork(attach(task.id))
        yield* TestClock.adjust("1 seconds")
        yield* Fiber.interrupt(waiting)
        yield* TestClock.adjust("4 seconds")
        assert.strictEqual((yield* Ref.get(world.notices)).length, 1)
      })))

  it.effect("any returns at the first end, with its notice alone suppressed", () =>
    withEngine({
      script: (_, call) => value(call.args["fast"] === true ? finished : running),
      limits: {}
    }, (world) =>
      Effect.gen(function*() {
        const sentinel = yield* Sentinel
        const slow = yield* start()
        const also = yield* start()
        const waiting = yield* Effect.fork(sentinel.attach([slow.id, also.id], { mode: "any" }))
        yield* TestClock.adjust("1 seconds")
        yield* sentinel.cancel(also.id)
        const records = yield* Fiber.join(waiting)
        assert.deepStrictEqual(records.map((record) => record.state._tag), ["Polling", "Cancelled"])
        const again = yield* sentinel.attach([slow.id, also.id], { mode: "any" })
        assert.deepStrictEqual(again.map((record) => record.state._tag), ["Polling", "Cancelled"])
        assert.deepStrictEqual(yield* Ref.get(world.notices), [])
      })))

  it.effect("an unknown id fails, naming it", () =>
    withEngine({ script: replies(running) }, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(attach("sentinel_no"))
        assert.match(error.message, /sentinel_no/)
      })))
})

describe("notices", () => {
  const once = (failures: ReadonlyArray<"failed" | "unknown" | "gone">) =>
    Effect.gen(function*() {
      return yield* withEngine({
        script: replies(running, finished),
        onNotice: (_, n) => {
          const certainty = failures[n - 1]
          return certainty === undefined ? Effect.void : Effect.fail(new NotifyFailure({ message: "no", certainty }))
        }
      }, (world) =>
        Effect.gen(function*() {
          const task = yield* start()
          yield* TestClock.adjust("10 minutes")
          const notices = yield* Ref.get(world.notices)
          return { texts: notices.map(({ text }) => text), delivery: (yield* (yield* Sentinel).peek(task.id)).delivery }
        }))
    })

  it.effect("a known failure is tried again three times", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* once(["failed", "failed"])).delivery, { _tag: "Delivered", tries: 3 })
      const given = yield* once(["failed", "failed", "failed", "failed", "failed"])
      assert.strictEqual(given.texts.length, 4)
      assert.deepStrictEqual(given.delivery, { _tag: "Undelivered", tries: 4, message: "no" })
    }))

  it.effect("an unknown outcome is sent once more, marked", () =>
    Effect.gen(function*() {
      const { delivery, texts } = yield* once(["unknown", "unknown", "unknown"])
      assert.strictEqual(texts.length, 2)
      assert.isFalse(texts[0]?.includes("may be repeated"))
      assert.isTrue(texts[1]?.startsWith("(may be repeated)"))
      assert.strictEqual(delivery._tag, "Undelivered")
    }))

  it.effect("a reader who is gone is given up, and the result stays readable", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* once(["gone"])).texts.length, 1)
    }))

  it.effect("a notifier that hangs or breaks touches nothing but the delivery", () =>
    Effect.gen(function*() {
      for (const onNotice of [() => Effect.never, () => Effect.dieMessage("broken")]) {
        yield* withEngine({ script: replies(running, finished), onNotice }, () =>
          Effect.gen(function*() {
            const task = yield* start()
            assert.strictEqual((yield* statusAfter(task.id, "5 seconds")).state._tag, "Completed")
            assert.strictEqual((yield* statusAfter(task.id, "10 minutes")).delivery._tag, "Undelivered")
          }))
      }
    }))

  it.effect("nobody to tell, no notice", () =>
    withEngine({ script: replies(running, finished) }, (world) =>
      Effect.gen(function*() {
        const task = yield* start({}, false)
        assert.strictEqual((yield* statusAfter(task.id, "5 seconds")).delivery._tag, "None")
        assert.deepStrictEqual(yield* Ref.get(world.notices), [])
      })))

  it.effect("closing the engine delivers a notice that was due, starts nothing, and ends no task", () =>
    Effect.gen(function*() {
      const world = yield* withEngine({
        script: replies(running, finished),
        onNotice: () => Effect.sleep("1 seconds")
      }, (world) =>
        Effect.gen(function*() {
          yield* start()
          yield* start({ until: condition({ is: "eq", value: "never" }) })
          yield* TestClock.adjust("5 seconds")
          yield* Effect.fork(Effect.zipRight(Effect.yieldNow(), TestClock.adjust("1 seconds")))
          return world
        }))
      assert.strictEqual((yield* Ref.get(world.notices)).length, 1)
      const calls = yield* Ref.get(world.calls)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* Ref.get(world.calls), calls)
    }))

  it.effect("closing the engine waits 2 s for a notice that hangs, however often it is asked to end, and interrupts it", () =>
    Effect.gen(function*() {
      const interrupted = yield* Deferred.make<void>()
      const waited = yield* Deferred.make<void>()
      const engine = yield* Effect.fork(withEngine({
        script: replies(running, finished),
        onNotice: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
      }, () => Effect.zipRight(start(), Deferred.await(waited))))
      yield* TestClock.adjust("5 seconds")
      yield* Deferred.succeed(waited, undefined)
      yield* TestClock.adjust("100 millis")
      yield* Effect.fork(Fiber.interrupt(engine))
      yield* TestClock.adjust("1899 millis")
      assert.isFalse(yield* Deferred.isDone(interrupted))
      yield* TestClock.adjust("1 millis")
      assert.isTrue(yield* Deferred.isDone(interrupted))
      yield* Fiber.await(engine)
    }))
})

describe("retention", () => {
  it.effect("a finished task is forgotten after its TTL", () =>
    withEngine({ script: replies(finished), limits: { taskTtl: 60_000 } }, () =>
      Effect.gen(function*() {
        const task = yield* start()
        assert.strictEqual((yield* statusAfter(task.id, "59 seconds")).state._tag, "Completed")
        yield* TestClock.adjust("1 seconds")
        assert.strictEqual((yield* Effect.flip((yield* Sentinel).get(task.id)))._tag, "TaskNotFound")
      })))

  it.effect("finished tasks make room, active ones do not", () =>
    withEngine(
      { script: (_, call) => value(call.args["done"] === true ? finished : running), limits: { maxTasks: 2 } },
      () =>
        Effect.gen(function*() {
          const ended = yield* start({ args: { done: true } })
          yield* start()
          yield* start()
          assert.strictEqual((yield* Effect.flip((yield* Sentinel).get(ended.id)))._tag, "TaskNotFound")
          assert.match((yield* Effect.flip(start())).message, /SENTINEL_MAX_TASKS/)
        })
    ))

  it.effect("list shows a session its own active tasks", () =>
    withEngine({ script: replies(running) }, () =>
      Effect.gen(function*() {
        const sentinel = yield* Sentinel
        const mine = yield* start()
        yield* sentinel.start(request(), { origin: { session: "other" } }, Engine.told)
        assert.deepStrictEqual((yield* sentinel.list("s1")).map(({ id }) => id), [mine.id])
        assert.strictEqual((yield* sentinel.list()).length, 2)
      })))

  it.effect("a value is kept up to its limit, at a whole character, and judged whole", () =>
    withEngine({ script: () => value("ab😀 done"), limits: { maxValueChars: 3 } }, () =>
      Effect.gen(function*() {
        const task = yield* start({ until: condition({ is: "match", value: "done$" }) })
        assert.strictEqual(task.state._tag, "Completed")
        assert.deepStrictEqual(task.last?.value, { text: "ab", length: 9 })
      })))
})

describe("clocks", () => {
  it.effect("a wall clock that jumps +2 h and -1 h causes no burst, no stall and no negative duration", () =>
    Effect.gen(function*() {
      const jump = yield* Ref.make(0)
      const jumping = Layer.unwrapEffect(Effect.map(Effect.clock, (clock) =>
        Layer.setClock(Object.create(clock, {
          unsafeCurrentTimeMillis: { value: () => clock.unsafeCurrentTimeMillis() + Effect.runSync(Ref.get(jump)) },
          unsafeCurrentTimeNanos: { value: () => clock.unsafeCurrentTimeNanos() },
          currentTimeMillis: { value: Effect.zipWith(clock.currentTimeMillis, Ref.get(jump), (now, by) => now + by) }
        }))))
      yield* withEngine({ script: replies(running) }, (world) =>
        Effect.gen(function*() {
          const task = yield* start({ timeout: 60_000 })
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(yield* Ref.get(world.calls), 3)
          yield* Ref.set(jump, 2 * 3_600_000)
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(yield* Ref.get(world.calls), 5)
          yield* Ref.set(jump, -3_600_000)
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(yield* Ref.get(world.calls), 7)
          const ended = yield* statusAfter(task.id, "30 seconds")
          assert.strictEqual(ended.state._tag, "Timeout")
          assert.strictEqual((ended.endedMono ?? 0) - ended.startedMono, 60_000)
        })).pipe(Effect.provide(jumping))
    }))
})

describe("the poll log", () => {
  it.effect("keeps equal consecutive values once, drops by count and says so", () =>
    withEngine(
      { script: (n) => value({ status: "running", n: Math.floor(n / 3) }), limits: { maxPollLog: 4 } },
      () =>
        Effect.gen(function*() {
          const task = yield* start()
          yield* statusAfter(task.id, "45 seconds")
          const sentinel = yield* Sentinel
          const page = yield* sentinel.read(task.id, { limit: 10 })
          assert.deepStrictEqual(page.entries.map(({ poll }) => poll), [7, 8, 9, 10])
          assert.deepStrictEqual(page.dropped, { byCount: 6, byBytes: 0 })
          assert.strictEqual(page.entries[0]?.value, page.entries[1]?.value)
          assert.strictEqual((yield* sentinel.read(task.id, { offset: 8, limit: 1 })).entries[0]?.poll, 9)
          assert.deepStrictEqual((yield* sentinel.read(task.id, { offset: 99, limit: 1 })).entries, [])
        })
    ))

  it.effect("stays under the byte limit of the process, at the cost of the largest log", () =>
    withEngine({
      script: (n, call) => value(call.args["big"] === true ? `${n}`.padStart(20_000, "x") : { status: "running" }),
      limits: { maxLogBytes: 400_000 }
    }, () =>
      Effect.gen(function*() {
        const small = yield* start()
        const big = yield* start({ args: { big: true } })
        yield* TestClock.adjust("5 minutes")
        const store = yield* TaskStore
        const kept = yield* store.read(big.id, { limit: 1_000 })
        assert.isAbove(kept.dropped.byBytes, 40)
        assert.isBelow(kept.entries.reduce((sum, { value }) => sum + (value?.text.length ?? 0) * 2, 0), 400_000)
        assert.strictEqual((yield* store.read(small.id, { limit: 1_000 })).entries.length, 61)
      })))
})
