import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Ref from "effect/Ref"
import type { Refused, TaskNotFound } from "./Errors.js"
import type { Claims } from "./internal/Claims.js"
import * as Claim from "./internal/Claims.js"
import { deliver } from "./internal/deliver.js"
import { makeLook } from "./internal/look.js"
import { makeSubmit } from "./internal/submit.js"
import { monotonic } from "./internal/time.js"
import type { Delivery, Recipient } from "./Notifier.js"
import { Notifier } from "./Notifier.js"
import type { LogPage, Range } from "./PollLog.js"
import { type EndState, isActive, makeTaskId, type PollRequest, type TaskId, type TaskRecord } from "./SentinelTask.js"
import { Settings } from "./Settings.js"
import { TaskStore } from "./TaskStore.js"
import { ToolInvoker } from "./ToolInvoker.js"

/** ms that `start` waits for the first look (SPEC "mcp_sentinel_poll"). */
export const firstLookMillis = 750

/** ms that a cancel waits for work behind the calls to be cancelled as well. */
const cancelMillis = 2_000

/** ms that closing the engine waits for notices that were due before. */
const drainMillis = 2_000

export interface AttachOptions {
  /** `any` returns at the first end, `all` when every task has ended */
  readonly mode: "any" | "all"
  /** ms; none = until the end */
  readonly timeout?: number | undefined
  /** runs beside the wait and never ends by itself; given the tasks that are waited for */
  readonly during?: ((ids: ReadonlyArray<TaskId>) => Effect.Effect<never>) | undefined
}

/** A task as the engine runs it. */
interface Running {
  readonly id: TaskId
  /** the first observation is in the store, or the task has ended */
  readonly looked: Deferred.Deferred<void>
  /** the final state is in the store */
  readonly done: Deferred.Deferred<void>
  readonly claims: Ref.Ref<Claims>
}

/** What the finishing side of the engine has to do. */
type Event =
  | { readonly _tag: "Ended"; readonly task: Running; readonly exit: Exit.Exit<EndState> }
  | { readonly _tag: "NoticeDue"; readonly task: Running }

/**
 * The engine. One fiber polls for each task, and its Exit alone decides how the task ended; a second side, which never
 * shares a fiber with a poll, writes the final state, wakes those who wait, and sends the one notice.
 */
export class Sentinel extends Context.Tag("@gcszhn/mcp-sentinel-core/Sentinel")<Sentinel, {
  /**
   * Starts polling and waits up to 750 ms for the first look. An end that the returned record shows sends no notice.
   * Interrupting `start` cancels the task, since nobody has learnt its id.
   */
  readonly start: (request: PollRequest, recipient: Recipient, delivery: Delivery) => Effect.Effect<TaskRecord, Refused>
  /** Ends a task as `Cancelled`, interrupting a call in flight; gives an ended task back unchanged. */
  readonly cancel: (id: string) => Effect.Effect<TaskRecord, TaskNotFound>
  /**
   * Waits for tasks to end and gives all of them back, ended or not. The outcomes it returns send no notice; an attach
   * that is interrupted before it returns leaves the notices as they were.
   */
  readonly attach: (
    ids: ReadonlyArray<string>,
    options: AttachOptions
  ) => Effect.Effect<ReadonlyArray<TaskRecord>, TaskNotFound>
  /** A task as it is now. Asking for an ended task counts as having been told. */
  readonly get: (id: string) => Effect.Effect<TaskRecord, TaskNotFound>
  /** A task as it is now, without counting as having told its outcome. */
  readonly peek: (id: string) => Effect.Effect<TaskRecord, TaskNotFound>
  /** The active tasks: of one session, or of all when no session is named. */
  readonly list: (session?: string) => Effect.Effect<ReadonlyArray<TaskRecord>>
  /** A part of the poll log. */
  readonly read: (id: string, range: Range) => Effect.Effect<LogPage, TaskNotFound>
}>() {
  static readonly layer = Layer.scoped(
    Sentinel,
    Effect.gen(function*() {
      const settings = yield* Settings
      const store = yield* TaskStore
      const invoker = yield* ToolInvoker
      const notifier = yield* Notifier
      const look = yield* makeLook
      const submit = yield* makeSubmit
      const running = new Map<string, Running>()
      const events = yield* Queue.unbounded<Event>()
      const retention = yield* FiberMap.make<TaskId, void, never>()
      const finishing = yield* FiberMap.make<string, void, never>()

      const finish = Effect.fnUntraced(function*(task: Running, exit: Exit.Exit<EndState>) {
        const claims = yield* Ref.get(task.claims)
        const state = endOf(exit, claims)
        if (Option.isNone(state)) return
        const endedMono = yield* monotonic
        const silent = state.value._tag === "Cancelled"
        yield* store.update(task.id, (record) => ({
          ...record,
          state: state.value,
          endedMono,
          nextPollAt: undefined,
          delivery: silent || !record.notifies ? { _tag: "None" } : record.delivery
        }))
        const due = yield* Ref.modify(task.claims, (claims) => Claim.end(claims))
        yield* Deferred.succeed(task.done, undefined)
        yield* Deferred.succeed(task.looked, undefined)
        if (due) yield* sendNotice(task)
        yield* retire(task)
        if (Number.isFinite(settings.taskTtl)) yield* FiberMap.run(retention, task.id, forget(task))
      })

      const forget = (task: Running) => Effect.zipRight(Effect.sleep(settings.taskTtl), store.remove(task.id))

      /** Lets go of an ended task once its notice is settled: from then on the store is all there is to it. */
      const retire = (task: Running) =>
        Effect.map(Effect.either(store.get(task.id)), (record) => {
          if (Either.isLeft(record) || record.right.delivery._tag !== "Waiting") running.delete(task.id)
        })

      const sendNotice = Effect.fnUntraced(function*(task: Running) {
        const record = yield* store.get(task.id)
        if (record.delivery._tag !== "Waiting") return
        yield* deliver(
          record,
          settings,
          notifier,
          (delivery) => store.update(task.id, (record) => ({ ...record, delivery }))
        )
      }, Effect.ignore)

      const handle = (event: Event) =>
        event._tag === "Ended"
          ? finish(event.task, event.exit)
          : Effect.zipRight(sendNotice(event.task), retire(event.task))

      yield* Queue.take(events).pipe(
        Effect.flatMap((event) => FiberMap.run(finishing, `${event._tag} ${event.task.id}`, handle(event))),
        Effect.forever,
        Effect.forkScoped
      )
      const emptied = Effect.repeat(Effect.zipRight(Effect.yieldNow(), Queue.size(events)), {
        until: (size) => size <= 0
      })
      const polls = yield* FiberMap.make<TaskId, EndState, never>()
      // A fiber of its own: in the finalizer itself, which is uninterruptible, the limit would not hold, and a second
      // interruption of the program, which reaches the children of an uninterruptible fiber too, would cut it short.
      yield* Effect.addFinalizer(() =>
        FiberMap.clear(polls).pipe(
          Effect.zipRight(emptied),
          Effect.zipRight(FiberMap.awaitEmpty(finishing)),
          Effect.disconnect,
          Effect.timeoutOption(drainMillis),
          Effect.interruptible,
          Effect.forkDaemon,
          Effect.flatMap(Fiber.await)
        )
      )

      /** Looks, pauses as long as the look asks for, and looks again, until a look ends the task. */
      const poll = (task: Running): Effect.Effect<EndState> =>
        Effect.flatMap(look(task.id), (step) => {
          if (step._tag === "End") return Effect.succeed(step.state)
          const sleep = Effect.sleep(step.millis)
          const pause = step.wake === undefined ? sleep : Effect.raceFirst(sleep, step.wake)
          const again = Effect.flatMap(pause, () => poll(task))
          return step.first ? Effect.zipRight(Deferred.succeed(task.looked, undefined), again) : again
        })

      const run = (task: Running, request: PollRequest): Effect.Effect<EndState> =>
        request.start === undefined
          ? poll(task)
          : Effect.flatMap(
            submit(task.id),
            Option.match({ onNone: () => poll(task), onSome: (end) => Effect.succeed(end) })
          )

      const release = (task: Running, told: boolean) =>
        Ref.modify(task.claims, (claims) => Claim.release(claims, told)).pipe(
          Effect.tap((due) => due ? Queue.offer(events, { _tag: "NoticeDue", task }) : tell(task))
        )

      /** Records that a reply told the outcome, where that is what kept the notice from being sent. */
      const tell = Effect.fnUntraced(function*(task: Running) {
        const claims = yield* Ref.get(task.claims)
        if (!claims.ended || !claims.told) return
        yield* store.update(
          task.id,
          (record) => record.delivery._tag === "Waiting" ? { ...record, delivery: { _tag: "Told" } } : record
        )
        yield* retire(task)
      })

      /** Runs a wait that holds the notices of `tasks` back; outcomes that it lived to return are told. */
      const claiming = <A, E>(tasks: ReadonlyArray<Running>, wait: Effect.Effect<A, E>) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.forEach(tasks, (task) => Ref.update(task.claims, Claim.take), { discard: true }).pipe(
            Effect.zipRight(Effect.exit(restore(wait))),
            Effect.tap((exit) =>
              Effect.forEach(
                tasks,
                (task) =>
                  Effect.flatMap(Deferred.isDone(task.done), (done) => release(task, done && Exit.isSuccess(exit))),
                { discard: true }
              )
            ),
            Effect.flatten
          )
        )

      const runningOf = (id: string) =>
        Effect.map(store.get(id), (record) => ({ record, task: Option.fromNullable(running.get(record.id)) }))

      const register = Effect.fnUntraced(function*(request: PollRequest, recipient: Recipient, delivery: Delivery) {
        const id = yield* makeTaskId
        yield* store.insert({
          id,
          request,
          recipient,
          notifies: delivery.notifies,
          state: { _tag: "Polling" },
          polls: 0,
          consecutiveErrors: 0,
          everGood: false,
          restarts: 0,
          pending: "the first call has not answered yet",
          startedAt: yield* Clock.currentTimeMillis,
          startedMono: yield* monotonic,
          delivery: { _tag: "Waiting" }
        })
        const task: Running = {
          id,
          looked: yield* Deferred.make<void>(),
          done: yield* Deferred.make<void>(),
          claims: yield* Ref.make(Claim.none)
        }
        running.set(id, task)
        yield* FiberMap.run(
          polls,
          id,
          Effect.scoped(Effect.zipRight(invoker.hold(request.server), run(task, request))).pipe(
            Effect.onExit((exit) => Queue.offer(events, { _tag: "Ended", task, exit }))
          )
        )
        return task
      }, Effect.uninterruptible)

      const cancelTask = Effect.fnUntraced(function*(task: Running) {
        yield* Ref.update(task.claims, Claim.cancel)
        yield* FiberMap.remove(polls, task.id)
        yield* Deferred.await(task.done)
        yield* cancelWork(task.id)
      }, Effect.uninterruptible)

      /** Cancels what the calls of a cancelled task left running. */
      const cancelWork = Effect.fnUntraced(function*(id: TaskId) {
        const { handle, recipient, request, state } = yield* store.get(id)
        if (state._tag !== "Cancelled" || handle === undefined || invoker.cancel === undefined) return
        const { args, server, tool } = request
        const told = invoker.cancel({ server, tool, args, handle, origin: recipient.origin }).pipe(
          Effect.disconnect,
          Effect.timeoutFail({
            duration: cancelMillis,
            onTimeout: () => ({ message: `no answer within ${cancelMillis} ms` })
          }),
          Effect.catchAll(({ message }) => Effect.logWarning(`What ${id} had started was not cancelled: ${message}`)),
          Effect.interruptible
        )
        // on a fiber of its own: who cancels may be past interruption, where nothing can be timed out
        yield* Fiber.await(yield* FiberMap.run(finishing, `Cancel ${id}`, told))
      }, Effect.ignore)

      return {
        start: Effect.fnUntraced(function*(request, recipient, delivery) {
          const task = yield* register(request, recipient, delivery)
          yield* claiming([task], Effect.timeoutOption(Deferred.await(task.looked), firstLookMillis)).pipe(
            Effect.onInterrupt(() => cancelTask(task))
          )
          return yield* Effect.orDie(store.get(task.id))
        }),
        cancel: Effect.fnUntraced(function*(id) {
          const { record, task } = yield* runningOf(id)
          if (isActive(record) && Option.isSome(task)) yield* cancelTask(task.value)
          return yield* store.get(id)
        }),
        attach: Effect.fnUntraced(function*(ids, options) {
          const found = yield* Effect.forEach(ids, runningOf)
          const tasks = found.flatMap(({ task }) => Option.toArray(task))
          const ends = tasks.map((task) => Deferred.await(task.done))
          const someEnded = found.some(({ record }) => !isActive(record))
          const ended = options.mode === "all"
            ? Effect.all(ends, { discard: true, concurrency: "unbounded" })
            : someEnded
            ? Effect.void
            : Effect.raceAll(ends)
          const during = options.during?.(tasks.map((task) => task.id))
          const wait = during === undefined ? ended : Effect.raceFirst(ended, during)
          yield* claiming(tasks, options.timeout === undefined ? wait : Effect.timeoutOption(wait, options.timeout))
          return yield* Effect.forEach(ids, (id) => store.get(id))
        }),
        get: Effect.fnUntraced(function*(id) {
          const { task } = yield* runningOf(id)
          if (Option.isSome(task) && (yield* Deferred.isDone(task.value.done))) {
            yield* claiming([task.value], Effect.void)
          }
          return yield* store.get(id)
        }),
        peek: store.get,
        list: (session) =>
          Effect.map(
            store.all,
            (records) =>
              records.filter((record) =>
                isActive(record) && (session === undefined || record.recipient.origin.session === session)
              )
          ),
        read: store.read
      }
    })
  )
}

/** None: the engine is shutting down, which is no end of the task. */
const endOf = (exit: Exit.Exit<EndState>, claims: Claims): Option.Option<EndState> =>
  Exit.match(exit, {
    onSuccess: Option.some,
    onFailure: (cause) => {
      if (claims.cancelled) return Option.some({ _tag: "Cancelled" })
      return Exit.isInterrupted(exit)
        ? Option.none()
        : Option.some({ _tag: "Error", reason: `The sentinel itself failed: ${Cause.pretty(cause).split("\n", 1)[0]}` })
    }
  })
