import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { compile, type Compiled } from "../../src/Condition.js"
import { type InvokeFailure, type NotifyFailure, Refused } from "../../src/Errors.js"
import type { Json } from "../../src/Json.js"
import { type Notice, Notifier } from "../../src/Notifier.js"
import { Sentinel } from "../../src/Sentinel.js"
import type { PollRequest } from "../../src/SentinelTask.js"
import { type Limits, Settings } from "../../src/Settings.js"
import { TaskStore } from "../../src/TaskStore.js"
import { type Invocation, type ToolCall, ToolInvoker } from "../../src/ToolInvoker.js"
import { fromJson } from "../../src/ToolResult.js"

/** What a scripted tool does with the nth call, counted from 1. */
export type Script = (n: number, call: ToolCall) => Effect.Effect<Invocation, InvokeFailure>

export const value = (json: Json): Effect.Effect<Invocation> =>
  Effect.sync(() => ({ value: fromJson(json), restarted: false }))

/** One reply a call, the last one for ever. */
export const replies = (...values: ReadonlyArray<Json>): Script => (n) =>
  value(values[Math.min(n, values.length) - 1] ?? null)

export interface World {
  readonly calls: Ref.Ref<number>
  readonly inFlight: Ref.Ref<number>
  readonly maxInFlight: Ref.Ref<number>
  readonly notices: Ref.Ref<ReadonlyArray<Notice>>
}

export interface Scene {
  readonly script: Script
  readonly limits?: Partial<Limits>
  readonly notifies?: boolean
  /** what becomes of a cancel that is to reach the work behind the calls */
  readonly onCancel?: (call: ToolCall) => Effect.Effect<void, InvokeFailure>
  readonly onNotice?: (notice: Notice, n: number) => Effect.Effect<void, NotifyFailure>
}

/** Runs `test` on the engine over a scripted tool and a notifier that remembers what it was told. */
export const withEngine = <A, E>(
  scene: Scene,
  test: (world: World) => Effect.Effect<A, E, Sentinel | TaskStore>
): Effect.Effect<A, E> =>
  Effect.gen(function*() {
    const world: World = {
      calls: yield* Ref.make(0),
      inFlight: yield* Ref.make(0),
      maxInFlight: yield* Ref.make(0),
      notices: yield* Ref.make<ReadonlyArray<Notice>>([])
    }
    return yield* Effect.provide(test(world), layerOf(scene, world))
  })

export const hosts = (scene: Scene, world: World) =>
  Layer.merge(
    Layer.succeed(ToolInvoker, {
      resolve: (target) =>
        target.server === "unknown"
          ? new Refused({ message: "no server \"unknown\"; there is jobs" })
          : Effect.succeed({ ...target, warnings: ["A warning."] }),
      invoke: (call) =>
        Effect.acquireUseRelease(
          Effect.zipRight(
            Effect.tap(
              Ref.updateAndGet(world.inFlight, (n) => n + 1),
              (now) => Ref.update(world.maxInFlight, (max) => Math.max(max, now))
            ),
            Ref.updateAndGet(world.calls, (n) => n + 1)
          ),
          (n) => scene.script(n, call),
          () => Ref.update(world.inFlight, (n) => n - 1)
        ),
      hold: () => Effect.void,
      cancel: scene.onCancel
    }),
    Layer.succeed(Notifier, {
      accept: () => Effect.succeed({ notifies: scene.notifies ?? true, advice: "You will be told." }),
      notify: (notice) =>
        Effect.flatMap(
          Ref.updateAndGet(world.notices, (notices) => [...notices, notice]),
          (notices) => scene.onNotice?.(notice, notices.length) ?? Effect.void
        )
    })
  )

export const layerOf = (scene: Scene, world: World) =>
  Sentinel.layer.pipe(
    Layer.provideMerge(TaskStore.layerMemory),
    Layer.provideMerge(hosts(scene, world)),
    Layer.provideMerge(Settings.layerOf(scene.limits ?? {}))
  )

export const condition = (source: Json): Compiled => Either.getOrThrow(compile(source, "until"))

export const done = condition({ path: "status", is: "eq", value: "done" })

export const request = (overrides: Partial<PollRequest> = {}): PollRequest => ({
  server: "jobs",
  tool: "get_status",
  args: {},
  interval: 5_000,
  until: done,
  maxErrors: 3,
  ...overrides
})

export const running = { status: "running" }
export const finished = { status: "done", n: 1 }

export const recipient = { origin: { session: "s1" } }
export const told = { notifies: true, advice: "" }

export const start = (overrides: Partial<PollRequest> = {}, notifies = true) =>
  Effect.flatMap(Sentinel, (sentinel) => sentinel.start(request(overrides), recipient, { notifies, advice: "" }))

export const attach = (id: string, timeout?: number) =>
  Effect.flatMap(Sentinel, (sentinel) => sentinel.attach([id], { mode: "all", timeout }))
