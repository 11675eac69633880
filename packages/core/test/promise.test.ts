import { assert, describe, it } from "@effect/vitest"
import { stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import { activate, type TinyHost, type TinyTool } from "../examples/tiny-harness.js"
import type { Json, JsonObject } from "../src/Json.js"
import {
  type InvokeContext,
  InvokeError,
  makeSentinel,
  type Notice,
  NotifyError,
  type PromiseSentinel,
  type SentinelHost
} from "../src/promise.js"
import { assertNoOrphans, eventually } from "./mcp/support.js"

const until = { path: "status", is: "eq", value: "done" }
const job = { server: "jobs", tool: "get_status", args: { id: 7 }, interval: 1_000, until }
const idOf = (text: string) => /sentinel_[0-9a-f]{32}/.exec(text)?.[0] ?? ""
const running = { status: "running" }
const finished = { status: "done" }

/** One reply a call, the last one for ever. */
const script = (...replies: ReadonlyArray<Json>) => {
  let calls = 0
  return (): Promise<Json> => Promise.resolve(replies[Math.min(calls++, replies.length - 1)] ?? null)
}

const using = <A>(host: SentinelHost, use: (sentinel: PromiseSentinel) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => makeSentinel(host)),
    (sentinel) => Effect.promise(() => use(sentinel)),
    (sentinel) => Effect.promise(() => sentinel.dispose())
  )

const poll = (host: SentinelHost, more: JsonObject = {}) =>
  using(host, (sentinel) => sentinel.handlePoll({ ...job, ...more }))

describe("a host that calls tools itself", () => {
  it.live("is told arguments, origin and a signal, and what it returns is the value", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const host = (reply: unknown) => ({
        invoke: (server: string, tool: string, args: JsonObject, { origin, signal }: InvokeContext) => {
          seen.push([server, tool, args, origin, signal.aborted])
          return Promise.resolve(reply)
        }
      })
      const first = yield* using(host(finished), (sentinel) => sentinel.handlePoll(job, { origin: { session: "s" } }))
      assert.match(first.text, /^## Sentinel Complete\n[^]*\{"status":"done"\}/)
      assert.deepStrictEqual(seen, [["jobs", "get_status", { id: 7 }, { session: "s" }, false]])
      for (
        const [reply, told] of [
          [{ content: [{ type: "text", text: "{\"status\":\"done\"}" }] }, /^## Sentinel Complete/],
          [{ structuredContent: finished }, /^## Sentinel Complete/],
          [
            { content: [{ type: "text", text: "no job 7" }], isError: true },
            /the tool answers with an error: no job 7/
          ],
          [undefined, /the value is null/],
          [{ status: "done", at: new Date(0), skipped: () => 1 }, /"at":"1970-01-01T00:00:00.000Z"\}/],
          [{ status: 1n }, /\*\*Error:\*\* The host returned what is no JSON: .*BigInt/],
          [() => 1, /The host returned what is no JSON/]
        ] as const
      ) {
        assert.match((yield* poll(host(reply))).text, told)
      }
    }))

  it.live("says by the kind of error what follows", () =>
    Effect.gen(function*() {
      const failing = (thrown: unknown): SentinelHost => ({ invoke: () => Promise.reject(thrown) })
      const [fatal, tool, transport, other, text] = [
        yield* poll(failing(new InvokeError("fatal", "unknown tool get_status"))),
        yield* poll(failing(new InvokeError("tool", "{\"status\":\"done\"}"))),
        yield* poll(failing(new InvokeError("transport", "too many", { retryAfter: 30_000 }))),
        yield* poll(failing(new TypeError("fetch failed"))),
        yield* poll({
          invoke: () => {
            throw "no connection"
          }
        })
      ]
      assert.match(
        fatal.text,
        /^## Sentinel Failed\n[^]*\*\*Status:\*\* error\n[^]*\*\*Error:\*\* unknown tool get_status/
      )
      assert.match(tool.text, /^## Sentinel Complete/)
      assert.match(transport.text, /\*\*Status:\*\* polling\n[^]*the last call failed: too many/)
      const next = Date.parse(String(transport.structured?.["nextPollAt"]))
      assert.isAbove(next, Date.now() + 20_000)
      assert.match(other.text, /the last call failed: fetch failed/)
      assert.match(text.text, /the last call failed: no connection/)
      assert.strictEqual(new InvokeError("tool", "x").name, "InvokeError")
    }))

  it.live("refuses a target before anything starts, and a broken check is a text", () =>
    Effect.gen(function*() {
      let calls = 0
      const invoke = () => {
        calls += 1
        return Promise.resolve(finished)
      }
      const refused = yield* poll({ invoke, check: ({ server }) => Promise.resolve(`no server ${server}`) })
      assert.deepStrictEqual(refused, { text: "Error: no server jobs", isError: true })
      const logged: Array<string> = []
      const broken = yield* poll({
        invoke,
        check: () => Promise.reject(new Error("no config")),
        log: (level, message) => void logged.push(`${level} ${message}`)
      })
      assert.deepStrictEqual(logged, ["ERROR a tool call broke no config"])
      assert.match(broken.text, /^Error: mcp_sentinel_poll broke: no config/)
      assert.strictEqual(calls, 0)
      assert.match((yield* poll({ invoke, check: () => Promise.resolve(undefined) })).text, /^## Sentinel Complete/)
    }))

  it.live("attach waits, with progress; an abort ends the call and not the sentinel", () =>
    using({ invoke: script(running, running, finished), settings: { maxNoticeChars: 100 } }, async (sentinel) => {
      const { text } = await sentinel.handlePoll(job)
      assert.include(text, "Nobody will tell you the end")
      const id = idOf(text)
      const abort = new AbortController()
      const attached = sentinel.handleAttach({ id }, { signal: abort.signal })
      abort.abort()
      assert.deepStrictEqual(await attached, {
        text: "Error: the call was interrupted; the sentinel goes on.",
        isError: true
      })
      const told: Array<string> = []
      const outcome = await sentinel.handleAttach({ id }, { onProgress: ({ message }) => void told.push(message) })
      assert.match(outcome.text, /^## Sentinel Complete/)
      assert.match(told[0] ?? "", /^poll 1, 0s, status is "running"/)
      assert.match((await sentinel.handleRead({ id, limit: 1 })).text, /### Poll 3/)
      assert.match((await sentinel.handleStatus({ id })).text, /\*\*Status:\*\* completed/)
      assert.match((await sentinel.call("nothing", {})).text, /^Error: there is no tool/)
    }))

  it.live("returns before the host would cut a call", () =>
    using({ invoke: script(running) }, async (sentinel) => {
      const { text } = await sentinel.handlePoll(job)
      const outcome = await sentinel.handleAttach({ id: idOf(text) }, { maxBlock: 2_500 })
      assert.match(outcome.text, /^## Sentinel Still Running/)
      assert.isFalse(outcome.isError)
    }))

  it.live("a cancel aborts the call in flight, and so does dispose, after which calls reject", () =>
    Effect.gen(function*() {
      const signals: Array<AbortSignal> = []
      const sentinel = makeSentinel({
        invoke: (_server, _tool, _args, { signal }) => {
          signals.push(signal)
          return new Promise(() => {})
        }
      })
      const { text } = yield* Effect.promise(() => sentinel.handlePoll(job))
      assert.match(text, /the first call has not answered yet/)
      yield* Effect.promise(() => sentinel.handleStatus({ action: "cancel", id: idOf(text) }))
      assert.isTrue(signals[0]?.aborted)
      yield* Effect.promise(() => sentinel.handlePoll(job))
      yield* Effect.promise(() => sentinel.dispose())
      assert.isTrue(signals[1]?.aborted)
      assert.isTrue((yield* Effect.exit(Effect.tryPromise(() => sentinel.handlePoll(job))))._tag === "Failure")
    }))
})

describe("a notice", () => {
  const ending = (
    notify: NonNullable<SentinelHost["notify"]>,
    use: (sentinel: PromiseSentinel, id: string) => Promise<void>
  ) =>
    using({ invoke: script(running, finished), notify }, async (sentinel) => {
      const { text } = await sentinel.handlePoll(job, { origin: { session: "s1" } })
      assert.include(text, "You will be told once when it ends; do not poll.")
      await use(sentinel, idOf(text))
    })
  const noticeOf = async (sentinel: PromiseSentinel, id: string) =>
    /\*\*Notice:\*\* (.*)/.exec((await sentinel.handleStatus({ id })).text)?.[1] ?? ""
  const wait = (holds: () => boolean) => Effect.runPromise(eventually(holds))

  it.live("is told once, to the session that asked", () => {
    const notices: Array<Notice> = []
    return ending((notice) => {
      notices.push(notice)
      return Promise.resolve()
    }, async (sentinel, id) => {
      await wait(() => notices.length > 0)
      assert.strictEqual(notices[0]?.origin.session, "s1")
      assert.strictEqual(notices[0]?.title, "Sentinel Complete")
      assert.strictEqual(await noticeOf(sentinel, id), "delivered (try 1)")
      assert.strictEqual(notices.length, 1)
    })
  })

  const kinds = [
    [
      "gone is given up",
      new NotifyError("gone", "the session was closed"),
      1,
      /^not delivered after 1 tries: the session was closed/
    ],
    ["failed is tried again", new NotifyError("failed", "busy"), 2, /^delivered \(try 2\)/],
    ["an unknown fate is repeated, marked", new Error("socket closed"), 2, /^delivered \(try 2\)/]
  ] as const
  for (const [name, thrown, tries, told] of kinds) {
    it.live(name, () => {
      const texts: Array<string> = []
      return ending(({ text }) => {
        texts.push(text)
        return texts.length === 1 ? Promise.reject(thrown) : Promise.resolve()
      }, async (sentinel, id) => {
        await wait(() => texts.length === tries)
        assert.match(await noticeOf(sentinel, id), told)
        assert.strictEqual(texts[1]?.startsWith("(may be repeated)"), tries === 1 ? undefined : thrown.name === "Error")
      })
    })
  }
})

describe("a host that names its servers", () => {
  it.live("has them called over connections of the sentinel's own, and dispose leaves no process", () =>
    Effect.scoped(Effect.gen(function*() {
      const jobs = yield* stdioJobs({
        tools: { get_status: { steps: [{ json: running }, { json: finished }] } }
      })
      let reads = 0
      const servers = () => {
        reads += 1
        return Promise.resolve([{
          name: "jobs",
          endpoint: { _tag: "stdio" as const, command: jobs.command, args: jobs.args, env: {} }
        }])
      }
      yield* using({ servers }, async (sentinel) => {
        assert.strictEqual(reads, 0)
        const { text } = await sentinel.handlePoll(job)
        assert.match((await sentinel.handleAttach({ id: idOf(text) })).text, /^## Sentinel Complete/)
        assert.strictEqual(reads, 1)
        assert.match((await sentinel.handlePoll({ ...job, server: "job" })).text, /^Error: [^]*jobs/)
        assert.strictEqual(reads, 2)
      })
      yield* eventually(() => jobs.calls("get_status") === 2)
      assertNoOrphans(jobs)
    })))

  it.live("and cannot name them gets a text that says so", () =>
    Effect.gen(function*() {
      const reply = yield* poll({ servers: () => Promise.reject(new Error("config is broken")) })
      assert.isTrue(reply.isError)
      assert.match(reply.text, /^Error: [^]*The host could not name its MCP servers: config is broken/)
    }))
})

describe("the example harness", () => {
  it.live("registers the tools, polls, and tells the session", () =>
    Effect.gen(function*() {
      const tools = new Map<string, TinyTool>()
      const said: Array<readonly [session: string, text: string]> = []
      let cleanUp = () => Promise.resolve()
      const reply = script(running, finished)
      const host: TinyHost = {
        servers: ["jobs"],
        callTool: (_server, tool) =>
          tool === "get_status" ? reply() : Promise.reject(new Error(`unknown tool ${tool}`)),
        registerTool: (tool) => void tools.set(tool.name, tool),
        say: (session, text) => {
          said.push([session, text])
          return Promise.resolve(session === "s1")
        },
        onShutdown: (then) => {
          cleanUp = then
        }
      }
      activate(host)
      assert.deepStrictEqual([...tools.keys()], [
        "mcp_sentinel_poll",
        "mcp_sentinel_status",
        "mcp_sentinel_attach",
        "mcp_sentinel_read"
      ])
      const shown: Array<string> = []
      const run = (tool: string, input: unknown, session = "s1") =>
        Effect.promise(async () =>
          await tools.get(tool)?.run(input, {
            session,
            signal: new AbortController().signal,
            showProgress: (message) => void shown.push(message)
          }) ?? assert.fail(`no tool ${tool}`)
        )
      assert.deepStrictEqual(yield* run("mcp_sentinel_poll", { ...job, server: "other" }), {
        text: "Error: no server other; there are jobs",
        failed: true
      })
      assert.match((yield* run("mcp_sentinel_poll", { ...job, tool: "typo" })).text, /\*\*Error:\*\* unknown tool typo/)
      const { text } = yield* run("mcp_sentinel_poll", job)
      assert.include(text, "You will be told in this session when it ends.")
      yield* eventually(() => said.length > 0)
      assert.strictEqual(said[0]?.[0], "s1")
      assert.match(said[0]?.[1] ?? "", /^## Sentinel Complete/)
      assert.match((yield* run("mcp_sentinel_attach", { id: idOf(text) })).text, /^## Sentinel Complete/)
      yield* Effect.promise(cleanUp)
    }))
})
