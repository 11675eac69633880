import { isActive, type TaskRecord } from "@gcszhn/mcp-sentinel-core/SentinelTask"
import type { Settings } from "@gcszhn/mcp-sentinel-core/Settings"
import { TaskStore } from "@gcszhn/mcp-sentinel-core/TaskStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** The task has ended, and nothing more will be sent about it. */
export const isSettled = (task: TaskRecord): boolean =>
  !isActive(task) && task.delivery._tag !== "Waiting" && task.delivery._tag !== "Sending"

/** Waits for something to become true of the tasks. */
export class TaskWatch extends Context.Tag("@gcszhn/mcp-sentinel-deepseek-harness-plugin/TaskWatch")<TaskWatch, {
  /** Ends as soon as `holds` is true of all known tasks; it is asked again whenever a task's state or delivery changes. */
  readonly until: (holds: (tasks: ReadonlyArray<TaskRecord>) => boolean) => Effect.Effect<void>
}>() {
  /** The store in memory, which also says when a task changed. */
  static readonly layer: Layer.Layer<TaskStore | TaskWatch, never, Settings> = Layer.effectContext(
    Effect.gen(function*() {
      const store = yield* TaskStore
      const version = yield* SubscriptionRef.make(0)
      const changed = SubscriptionRef.update(version, (count) => count + 1)
      return Context.make(TaskStore, {
        ...store,
        insert: (record) => Effect.zipLeft(store.insert(record), changed),
        update: (id, change) => Effect.zipLeft(store.update(id, change), changed),
        remove: (id) => Effect.zipLeft(store.remove(id), changed)
      }).pipe(Context.add(TaskWatch, {
        until: (holds) =>
          version.changes.pipe(
            Stream.mapEffect(() => store.all),
            Stream.filter(holds),
            Stream.runHead,
            Effect.asVoid
          )
      }))
    })
  ).pipe(Layer.provide(TaskStore.layerMemory))
}
