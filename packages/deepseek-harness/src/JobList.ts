import type { Context as DshContext } from "@deepseek-ai/cordis"
import type { Agent } from "@deepseek-ai/dsh-agent"
import type { JobId, JobOutcome, JobRegistry } from "@deepseek-ai/dsh-jobs"
import { type Notice, Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import { Sentinel } from "@gcszhn/mcp-sentinel-core/Sentinel"
import { isActive, type TaskId, type TaskRecord } from "@gcszhn/mcp-sentinel-core/SentinelTask"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { callerOf } from "./Caller.js"
import { isSettled, TaskWatch } from "./TaskWatch.js"

declare module "@deepseek-ai/dsh-jobs" {
  interface JobKindMap {
    sentinel: "sentinel"
  }
}

interface Job {
  readonly jobs: JobRegistry
  readonly id: JobId
  readonly owner: Agent
  readonly end: (outcome: JobOutcome) => void
  /** dsh has taken note of the end once this is awaited, since it listens to the same promise and came first */
  readonly done: Promise<JobOutcome>
}

const labelOf = ({ request }: TaskRecord) => `${request.server}/${request.tool} every ${request.interval} ms`

const outcomeOf = (notice: Notice): JobOutcome => ({
  status: notice.title === "Sentinel Complete" ? "completed" : "failed",
  detail: notice.title,
  output: notice.text
})

/** ms that a silent end is given to get through dsh's registry */
const settleMillis = 1_000

const start = (ctx: DshContext, task: TaskRecord, cancel: () => void): Job | undefined => {
  const jobs = ctx.get("jobs")
  const owner = callerOf(task.recipient.origin)?.root
  if (jobs === undefined || owner === undefined) return undefined
  let end: Job["end"] = () => {}
  const done = new Promise<JobOutcome>((resolve) => {
    end = resolve
  })
  const id = jobs.start({ kind: "sentinel", label: labelOf(task), owner, run: () => ({ cancel, done }) })
  return { jobs, id, owner, end, done }
}

const announce = (job: Job, notice: Notice) =>
  Effect.promise(() => {
    job.end(outcomeOf(notice))
    return job.done
  })

/** dsh announces no end that somebody waits for. */
const close = (job: Job, task: TaskRecord | undefined) =>
  Effect.tryPromise(() => {
    const waited = job.jobs.wait(job.id, settleMillis, job.owner)
    const state = task?.state._tag ?? "Cancelled"
    job.end({
      status: state === "Completed" ? "completed" : state === "Cancelled" ? "killed" : "failed",
      detail: state
    })
    return waited
  }).pipe(Effect.ignore)

/**
 * Sentinels as entries of dsh's own job list: they can be seen and killed there, and dsh announces their ends itself. A
 * task that the list does not take (no job service in the profile, the list is full) stays off it and sends its own notice.
 */
export class JobList extends Context.Tag("@gcszhn/mcp-sentinel-deepseek-harness-plugin/JobList")<JobList, {
  readonly add: (task: TaskRecord, cancel: () => void) => Effect.Effect<void>
  /** Takes a task's job off the list of running ones. */
  readonly take: (id: TaskId) => Effect.Effect<Job | undefined>
}>() {
  static readonly layer = (ctx: DshContext): Layer.Layer<JobList> =>
    Layer.sync(JobList, () => {
      const listed = new Map<TaskId, Job>()
      return {
        add: (task, cancel) =>
          Effect.try(() => start(ctx, task, cancel)).pipe(
            Effect.tap((job) => job === undefined ? undefined : listed.set(task.id, job)),
            Effect.catchAll(({ error }) => Effect.logWarning(`${task.id} is not on the job list: ${String(error)}`)),
            Effect.asVoid
          ),
        take: (id) =>
          Effect.sync(() => {
            const job = listed.get(id)
            listed.delete(id)
            return job
          })
      }
    })

  /** Lists every task that is still polling when its acknowledgement goes out. */
  static readonly sentinel: Layer.Layer<Sentinel, never, Sentinel | JobList | TaskWatch> = Layer.scoped(
    Sentinel,
    Effect.gen(function*() {
      const sentinel = yield* Sentinel
      const list = yield* JobList
      const watch = yield* TaskWatch
      const run = yield* FiberSet.makeRuntime<never>()

      const closeWhenSettled = Effect.fnUntraced(function*(id: TaskId) {
        let last: TaskRecord | undefined
        yield* watch.until((tasks) => {
          last = tasks.find((task) => task.id === id)
          return last === undefined || isSettled(last)
        })
        const job = yield* list.take(id)
        if (job !== undefined) yield* close(job, last)
      })

      const follow = Effect.fnUntraced(function*(task: TaskRecord) {
        if (!isActive(task)) return
        yield* list.add(task, () => {
          run(Effect.ignore(sentinel.cancel(task.id)))
        })
        run(closeWhenSettled(task.id))
      })

      return { ...sentinel, start: (...args) => Effect.tap(sentinel.start(...args), follow) }
    })
  )

  /** Leaves the notice of a listed task to dsh. */
  static readonly notifier: Layer.Layer<Notifier, never, Notifier | JobList> = Layer.effect(
    Notifier,
    Effect.gen(function*() {
      const notifier = yield* Notifier
      const list = yield* JobList
      return {
        accept: (recipient) =>
          Effect.map(notifier.accept(recipient), (delivery) => ({
            ...delivery,
            advice: `${delivery.advice} It is on the job list too (job_list, job_kill).`
          })),
        notify: (notice) =>
          Effect.flatMap(
            list.take(notice.id),
            (job) => job === undefined ? notifier.notify(notice) : announce(job, notice)
          )
      }
    })
  )
}
