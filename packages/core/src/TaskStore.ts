import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Refused, TaskNotFound } from "./Errors.js"
import { type LogPage, PollLog, type Range, trimLargest } from "./PollLog.js"
import { isActive, type Observation, type TaskId, type TaskRecord } from "./SentinelTask.js"
import { Settings } from "./Settings.js"

interface Entry {
  record: TaskRecord
  readonly log: PollLog
}

/** What is known of each task: its record, its poll log, and their retention. */
export class TaskStore extends Context.Tag("@gcszhn/mcp-sentinel-core/TaskStore")<TaskStore, {
  /** Adds a task; finished tasks make room, oldest first. Fails when as many tasks are active as may be. */
  readonly insert: (record: TaskRecord) => Effect.Effect<void, Refused>
  readonly get: (id: string) => Effect.Effect<TaskRecord, TaskNotFound>
  /** Changes a record; a task that was forgotten meanwhile is left alone. */
  readonly update: (id: TaskId, change: (record: TaskRecord) => TaskRecord) => Effect.Effect<void>
  /** Changes a record and appends the observation that it now has as `last` to the poll log. */
  readonly observe: (
    id: TaskId,
    observation: Observation,
    change: (record: TaskRecord) => TaskRecord
  ) => Effect.Effect<void>
  readonly all: Effect.Effect<ReadonlyArray<TaskRecord>>
  readonly read: (id: string, range: Range) => Effect.Effect<LogPage, TaskNotFound>
  readonly remove: (id: TaskId) => Effect.Effect<void>
}>() {
  /** Keeps tasks in memory; they end with the process. */
  static readonly layerMemory = Layer.effect(
    TaskStore,
    Effect.gen(function*() {
      const settings = yield* Settings
      const entries = new Map<string, Entry>()
      let logBytes = 0

      const find = (id: string) => {
        const entry = entries.get(id)
        return entry === undefined ? Effect.fail(new TaskNotFound({ id })) : Effect.succeed(entry)
      }

      const remove = (id: string) =>
        Effect.sync(() => {
          logBytes -= entries.get(id)?.log.bytes ?? 0
          entries.delete(id)
        })

      const keepUnderLimit = () => {
        if (logBytes <= settings.maxLogBytes) return
        logBytes -= trimLargest([...entries.values()].map((entry) => entry.log), settings.maxLogBytes * 0.9)
      }

      return {
        insert: Effect.fnUntraced(function*(record) {
          if (entries.size >= settings.maxTasks) {
            const finished = [...entries.values()].find((entry) => !isActive(entry.record))
            if (finished === undefined) {
              return yield* new Refused({
                message:
                  `${entries.size} sentinels are active, as many as SENTINEL_MAX_TASKS allows. Cancel one, or wait for one to end.`
              })
            }
            yield* remove(finished.record.id)
          }
          entries.set(record.id, { record, log: new PollLog(settings.maxPollLog) })
        }),
        get: (id) => Effect.map(find(id), (entry) => entry.record),
        update: (id, change) =>
          Effect.sync(() => {
            const entry = entries.get(id)
            if (entry !== undefined) entry.record = change(entry.record)
          }),
        observe: (id, observation, change) =>
          Effect.sync(() => {
            const entry = entries.get(id)
            if (entry === undefined) return
            const before = entry.log.bytes
            const kept = entry.log.append(observation)
            entry.record = { ...change(entry.record), last: kept }
            logBytes += entry.log.bytes - before
            keepUnderLimit()
          }),
        all: Effect.sync(() => [...entries.values()].map((entry) => entry.record)),
        read: (id, range) => Effect.map(find(id), (entry) => entry.log.page(range)),
        remove
      }
    })
  )
}
