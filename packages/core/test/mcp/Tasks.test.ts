import { assert, describe, it } from "@effect/vitest"
import type { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import { type Invocation, ToolInvoker, type Work } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import type { JobScript, Step, TaskScript } from "@gcszhn/mcp-sentinel-testkit/JobScript"
import { httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Json } from "../../src/Json.js"
import { assertNoOrphans, call, http, invokerOf, stdio } from "./support.js"

const taskOf = (task: TaskScript, ...steps: ReadonlyArray<Step>): JobScript => ({
  tools: {
    research: { task, steps: steps.length === 0 ? [{}] : steps },
    look: { steps: [{ json: { status: "running" } }] }
  }
})

const result: Step = { json: { pages: 3 } }
const quick: TaskScript = {
  pollInterval: 2_000,
  stages: [{ status: "working", statusMessage: "Reading", millis: 300 }, { status: "completed", result }]
}

/** A call as the engine makes it: handles are kept, and given with the next one. */
const watcher = (tool = "research", args = {}) => {
  const kept: Array<Json | undefined> = []
  let handle: Json | undefined
  const look = Effect.flatMap(ToolInvoker, (invoker) =>
    invoker.invoke({
      ...call(tool, args),
      handle,
      keep: (value) =>
        Effect.sync(() => {
          kept.push(value)
          handle = value
        })
    })).pipe(
      Effect.tap(({ work }) => {
        if (work?._tag === "Working") handle = work.handle
      })
    )
  return { look, kept, handle: () => handle }
}

const workOf = <Tag extends Work["_tag"]>(
  { work }: Invocation,
  tag: Tag
): Extract<Work, { readonly _tag: Tag }> => {
  const isTag = (work: Work | undefined): work is Extract<Work, { readonly _tag: Tag }> => work?._tag === tag
  return isTag(work) ? work : assert.fail(`no ${tag}: ${JSON.stringify(work)}`)
}

const overStdio = <A, E>(
  script: JobScript,
  body: (
    jobs: Effect.Effect.Success<ReturnType<typeof stdioJobs>>
  ) => Effect.Effect<A, E, ToolInvoker | ConnectionPool>
) =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(script)
    yield* Effect.provide(body(jobs), invokerOf([stdio(jobs, { callTimeout: 3_000 })]))
    assertNoOrphans(jobs)
  }))

describe("a tool that runs as an MCP task", () => {
  it.live("is started once, watched by the protocol, and its result is fetched", () =>
    overStdio(taskOf(quick), (jobs) =>
      Effect.gen(function*() {
        const { handle, kept, look } = watcher()
        const first = workOf(yield* look, "Working")
        assert.deepStrictEqual(kept, [{ tasks: "2025-11-25" }])
        assert.deepStrictEqual(handle(), { tasks: "2025-11-25", taskId: "task-1" })
        assert.strictEqual(first.pause, 2_000)
        assert.match(first.reason, /MCP task "task-1" is working: Reading/)
        const second = yield* look
        workOf(second, "Working")
        assert.deepInclude(second.value.json, { taskId: "task-1", status: "working" })
        yield* Effect.sleep(400)
        const last = yield* look
        workOf(last, "Ended")
        assert.deepStrictEqual(last.value.json, { pages: 3 })
        assert.deepStrictEqual([jobs.calls("research"), jobs.asked("tasks/get"), jobs.asked("tasks/result")], [1, 2, 1])
      })))

  it.live("wakes at the server's notification, which saves the status request", () =>
    overStdio(taskOf({ ...quick, push: true }), (jobs) =>
      Effect.gen(function*() {
        const { look } = watcher()
        const { wake } = workOf(yield* look, "Working")
        yield* Effect.timeoutFail(wake ?? Effect.never, { duration: 2_000, onTimeout: () => "no wake" })
        workOf(yield* look, "Ended")
        assert.deepStrictEqual([jobs.asked("tasks/get"), jobs.asked("tasks/result")], [0, 1])
      })))

  it.live("takes a notification that came before the reply that creates the task", () =>
    overStdio(taskOf({ stages: [{ status: "completed", result }], push: "first" }), (jobs) =>
      Effect.gen(function*() {
        const { look } = watcher()
        const { wake } = workOf(yield* look, "Working")
        yield* Effect.timeoutFail(wake ?? Effect.never, { duration: 1_000, onTimeout: () => "no wake" })
        assert.deepStrictEqual((yield* look).value.json, { pages: 3 })
        assert.strictEqual(jobs.asked("tasks/get"), 0)
      })))

  it.live("fails with the server's status message and the error in its result", () =>
    overStdio(
      taskOf({ stages: [{ status: "failed", statusMessage: "Reading", result: { isError: "disk full" } }] }),
      () =>
        Effect.gen(function*() {
          const { look } = watcher()
          yield* look
          const failed = yield* look
          assert.match(workOf(failed, "Failed").reason, /MCP task "task-1" failed: Reading; disk full/)
          assert.strictEqual(failed.value.raw, "disk full")
        })
    ))

  it.live("fails where the result of a failed task is a JSON-RPC error, or is withheld", () =>
    Effect.gen(function*() {
      const failing = (task: TaskScript) =>
        overStdio(taskOf(task), () =>
          Effect.gen(function*() {
            const { look } = watcher()
            yield* look
            reasons.push(workOf(yield* look, "Failed").reason)
          }))
      const reasons: Array<string> = []
      yield* failing({ stages: [{ status: "failed", result: { rpcError: { code: -32603, message: "boom" } } }] })
      yield* failing({ stages: [{ status: "completed", result: { isError: "no such topic" } }] })
      assert.match(reasons[0] ?? "", /failed: boom/)
      assert.match(reasons[1] ?? "", /failed: no such topic/)
    }))

  it.live("that needs input ends with what its server asks, without waiting for an answer", () =>
    overStdio(
      taskOf({
        stages: [{ status: "input_required", statusMessage: "Two meanings.", question: "Snake or language?" }]
      }),
      (jobs) =>
        Effect.gen(function*() {
          const { look } = watcher()
          yield* look
          const [took, answer] = yield* Effect.timed(look)
          assert.match(
            workOf(answer, "Failed").reason,
            /input_required\)\. The server asks: Two meanings\. Snake or language\? \(fields: meaning\)/
          )
          assert.isBelow(Duration.toMillis(took), 1_500)
          assert.strictEqual(jobs.asked("tasks/result"), 1)
        })
    ))

  it.live("that needs input ends within 2 s where the question does not come", () =>
    overStdio(taskOf({ stages: [{ status: "input_required" }] }), () =>
      Effect.gen(function*() {
        const { look } = watcher()
        yield* look
        assert.match(workOf(yield* look, "Failed").reason, /does not say what it asks for/)
      })))

  it.live("is lost when the server does not know it any more", () =>
    overStdio(taskOf({ stages: [{ status: "working" }], expires: 100 }), () =>
      Effect.gen(function*() {
        const { look } = watcher()
        yield* look
        yield* Effect.sleep(150)
        const failure = yield* Effect.flip(look)
        assert.strictEqual(failure._tag, "FatalFailure")
        assert.match(failure.message, /does not know the MCP task "task-1" any more: .*Task not found\. It has expired/)
      })))

  it.live("is lost with the process that kept it in memory, and is not started again", () =>
    overStdio(taskOf({ stages: [{ status: "working" }] }), (jobs) =>
      Effect.gen(function*() {
        const { look } = watcher()
        yield* look
        for (const pid of jobs.pids()) process.kill(pid, "SIGKILL")
        yield* Effect.sleep(200)
        assert.match((yield* Effect.flip(look)).message, /the server was started again and kept its tasks in memory/)
        assert.strictEqual(jobs.calls("research"), 1)
      })))

  it.live("is never asked for twice: a lost answer to its creation is an error", () =>
    overStdio(taskOf(quick, { exit: 3 }), (jobs) =>
      Effect.gen(function*() {
        const { handle, look } = watcher()
        for (const attempt of [1, 2]) {
          const failure = yield* Effect.flip(look)
          assert.strictEqual(failure._tag, "FatalFailure", `attempt ${attempt}`)
          assert.match(failure.message, /asked for once and the answer was lost, so whether it runs is unknown/)
        }
        assert.deepStrictEqual(handle(), { tasks: "2025-11-25" })
        assert.strictEqual(jobs.calls("research"), 1)
      })))

  it.live("that the server refuses is an error; arguments that it does not take are fatal as ever", () =>
    Effect.gen(function*() {
      const messages: Array<string> = []
      for (const code of [-32603, -32602]) {
        yield* overStdio(taskOf(quick, { rpcError: { code, message: "no" } }), (jobs) =>
          Effect.gen(function*() {
            const failure = yield* Effect.flip(watcher().look)
            assert.strictEqual(failure._tag, "FatalFailure")
            messages.push(failure.message)
            assert.strictEqual(jobs.calls("research"), 1)
          }))
      }
      assert.match(messages[0] ?? "", /was not started, and is not asked for again: .*-32603: no/)
      assert.match(messages[1] ?? "", /-32602: no/)
    }))

  it.live("that is answered at once has ended", () =>
    overStdio(taskOf({ ...quick, ignored: true }, result), () =>
      Effect.gen(function*() {
        const answer = yield* watcher().look
        workOf(answer, "Ended")
        assert.deepStrictEqual(answer.value.json, { pages: 3 })
      })))

  it.live("is cancelled at its server", () =>
    overStdio(taskOf({ stages: [{ status: "working" }] }), (jobs) =>
      Effect.gen(function*() {
        const { handle, look } = watcher()
        yield* look
        const invoker = yield* ToolInvoker
        yield* invoker.cancel?.({ ...call("research"), handle: handle() }) ?? Effect.void
        assert.strictEqual(jobs.asked("tasks/cancel"), 1)
        assert.match(workOf(yield* look, "Failed").reason, /was cancelled at its server/)
      })))

  it.live("a tool beside it is polled as ever", () =>
    overStdio(taskOf(quick), (jobs) =>
      Effect.gen(function*() {
        const { look } = watcher("look")
        assert.deepStrictEqual(yield* look, {
          value: { json: { status: "running" }, raw: "{\"status\":\"running\"}" },
          restarted: false
        })
        yield* look
        assert.strictEqual(jobs.count("list"), 1)
        assert.strictEqual(jobs.calls("look"), 2)
      })))

  it.live("is no submission of start, where it runs only as a task; an optional one is called plainly", () =>
    Effect.gen(function*() {
      const submit = Effect.flatMap(ToolInvoker, (invoker) => invoker.invoke({ ...call("research"), once: true }))
      yield* overStdio(taskOf(quick), (jobs) =>
        Effect.gen(function*() {
          assert.match((yield* Effect.flip(submit)).message, /only as an MCP task, .*Name it as "tool" instead/)
          assert.strictEqual(jobs.calls(), 0)
        }))
      yield* overStdio(taskOf({ ...quick, support: "optional" }), () =>
        Effect.gen(function*() {
          assert.strictEqual((yield* submit).value.raw, "carried out plainly")
        }))
    }))

  it.live("is not warned of as a tool that each poll runs again", () =>
    overStdio({
      tools: {
        research: { task: quick, steps: [{}], annotations: { readOnlyHint: false } },
        delete: { steps: [{}], annotations: { destructiveHint: true } }
      }
    }, () =>
      Effect.gen(function*() {
        yield* watcher().look
        const invoker = yield* ToolInvoker
        assert.deepStrictEqual((yield* invoker.resolve({ server: "jobs", tool: "research" }, {})).warnings, [])
        assert.match((yield* invoker.resolve({ server: "jobs", tool: "delete" }, {})).warnings.join(), /runs it again/)
      })))
})

describe("over HTTP", () => {
  it.scopedLive("a task outlives its session and its client: only the handle is needed", () =>
    Effect.gen(function*() {
      const jobs = yield* httpJobs(taskOf(quick))
      const { handle, look } = watcher()
      yield* Effect.gen(function*() {
        workOf(yield* look, "Working")
        jobs.forget()
        workOf(yield* look, "Working")
      }).pipe(Effect.provide(invokerOf([http(jobs)])))
      yield* Effect.sleep(400)
      const durable: Json = JSON.parse(JSON.stringify(handle()))
      const answer = yield* Effect.flatMap(ToolInvoker, (invoker) =>
        invoker.invoke({ ...call("research"), handle: durable })).pipe(Effect.provide(invokerOf([http(jobs)])))
      workOf(answer, "Ended")
      assert.strictEqual(jobs.calls("research"), 1)
    }))

  it.scopedLive("a session that is gone, or a refusal for the rate, leaves the creation to be tried again", () =>
    Effect.gen(function*() {
      const limited: Step = { http: { status: 429, headers: { "retry-after": "1" }, body: "slow down" } }
      const jobs = yield* httpJobs(taskOf(quick, limited, {}))
      const { kept, look } = watcher()
      yield* Effect.gen(function*() {
        yield* watcher("look").look
        jobs.forget()
        const refused = yield* Effect.flip(look)
        assert.isTrue(refused._tag === "TransportFailure" && refused.retryAfter === 1_000)
        assert.isUndefined(kept.at(-1))
        workOf(yield* look, "Working")
      }).pipe(Effect.provide(invokerOf([http(jobs)])))
    }))

  it.scopedLive("an error of a status request counts as one, and is no answer of the tool", () =>
    Effect.gen(function*() {
      const jobs = yield* httpJobs(taskOf({ ...quick, hiccups: 1 }))
      const { look } = watcher()
      yield* Effect.gen(function*() {
        yield* look
        const failure = yield* Effect.flip(look)
        assert.strictEqual(failure._tag, "TransportFailure")
        assert.match(failure.message, /-32603: hiccup/)
        workOf(yield* look, "Working")
      }).pipe(Effect.provide(invokerOf([http(jobs)])))
    }))
})
