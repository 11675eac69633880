import { assert, describe, it, layer } from "@effect/vitest"
import { type CliClient, startCli, type ToolAnswer } from "@gcszhn/mcp-sentinel-testkit/CliClient"
import { type Counters, type HttpJobs, httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { type Fault, faults, hostile, type Seen } from "./faultCases.js"
import { attach, done, idOf, isDone, poll, read, running, says, status, waitFor } from "./support.js"

/** Secrets of every server's entry; none of them may appear anywhere. */
const canaries = {
  env: "canary-env-4f1c9a",
  header: "canary-header-77ab02",
  query: "canary-query-0d3e51",
  argument: "canary-argument-b81f66"
}

const assertNoCanary = (text: string) => {
  for (const canary of Object.values(canaries)) assert.notInclude(text, canary)
}

interface Prepared {
  readonly server: string
  readonly fault: Fault
  readonly entry: Readonly<Record<string, unknown>>
  readonly jobs: Counters
  readonly during: Effect.Effect<unknown>
}

const prepare = Effect.fnUntraced(function*(fault: Fault, index: number) {
  const { during, entry = {}, over, script = {} } = fault
  const given = typeof script === "function" ? script() : script
  const server = `f${index} ${fault.name.startsWith("hostile") ? hostile : ""}`.trim()
  const finish = (jobs: Counters, base: Readonly<Record<string, unknown>>, url: string): Prepared => {
    const own = typeof entry === "function" ? entry(url) : entry
    const secret = "url" in own || over === "http"
      ? { headers: { "X-Api-Key": canaries.header, Authorization: `Bearer ${canaries.header}` } }
      : { env: { API_TOKEN: canaries.env } }
    return {
      server,
      fault,
      jobs,
      entry: { ..."url" in own ? {} : base, ...secret, ...own },
      during: during === undefined ? Effect.void : during({ ...remote, ...jobs })
    }
  }
  let remote: HttpJobs = {
    events: () => [],
    asked: () => 0,
    calls: () => 0,
    maxInFlight: () => 0,
    count: () => 0,
    url: "",
    forget: () => undefined,
    down: Effect.void,
    up: Effect.void
  }
  if (over === "http") {
    remote = yield* httpJobs(given)
    const url = `${remote.url}?key=${canaries.query}`
    return finish(remote, { url }, url)
  }
  const jobs = yield* stdioJobs(given)
  return finish(jobs, { command: jobs.command, args: [...jobs.args, "--api-key", canaries.argument] }, "")
})

const play = (cli: CliClient, { during, fault, jobs, server }: Prepared) =>
  Effect.gen(function*() {
    const ack = yield* poll(cli, { server, tool: "look", until: isDone, ...fault.poll })
    const [end] = yield* Effect.all([attach(cli, idOf(ack)), during], { concurrency: "unbounded" })
    const seen: Seen = { ack, end, log: yield* read(cli, idOf(ack), { limit: 9 }), jobs }
    return seen
  })

/** All faults at work at once in one command; what each brought, and what the command wrote to stderr. */
class Played extends Context.Tag("Played")<Played, {
  readonly outcomes: ReadonlyMap<Fault, Exit.Exit<Seen, unknown>>
  readonly stderr: string
}>() {
  static readonly live = Layer.scoped(
    Played,
    Effect.gen(function*() {
      const prepared = yield* Effect.forEach(faults, prepare)
      const cli = yield* startCli({
        servers: Object.fromEntries(prepared.map(({ entry, server }) => [server, entry])),
        args: ["--log-level", "debug"]
      })
      const outcomes = yield* Effect.forEach(
        prepared,
        (one) => Effect.map(Effect.exit(play(cli, one)), (exit) => [one.fault, exit] as const),
        { concurrency: 24 }
      )
      return { outcomes: new Map(outcomes), stderr: cli.stderr() }
    })
  )
}

const controls = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}]/u

/** The lines that are the sentinel's own: no fence may be left open, and nothing foreign may get out of one. */
const ownLines = (text: string): ReadonlyArray<string> => {
  let fence: string | undefined
  const own = text.split("\n").filter((line) => {
    if (fence === undefined) {
      fence = /^(`{3,})(?:json)?$/.exec(line)?.[1]
      return fence === undefined
    }
    if (line === fence) fence = undefined
    return false
  })
  assert.isUndefined(fence, `an open fence in:\n${text}`)
  return own
}

/** A reply about one sentinel: one heading, one id, one status, whatever a server has said. */
const assertWellFormed = ({ text }: ToolAnswer) => {
  assert.notMatch(text, controls)
  const own = ownLines(text)
  assert.lengthOf(own.filter((line) => line.startsWith("## ")), 1, text)
  for (const label of ["ID", "Status", "Server", "Tool"]) {
    assert.lengthOf(own.filter((line) => line.startsWith(`**${label}:**`)), 1, text)
  }
}

layer(Played.live, { timeout: "3 minutes", excludeTestServices: true })("a server with", (it) => {
  for (const fault of faults) {
    it.effect(fault.name, () =>
      Effect.gen(function*() {
        const seen = yield* Effect.flatten(Effect.flatMap(Played, ({ outcomes }) => {
          const exit = outcomes.get(fault)
          return exit === undefined ? Effect.dieMessage("not played") : Effect.succeed(exit)
        }))
        const { ack, end, log } = seen
        assert.strictEqual(end.structured["status"], fault.ends, `${end.text}\n${log.text}`)
        if (fault.polls !== undefined) assert.strictEqual(end.structured["polls"], fault.polls, log.text)
        says(end.text, ...fault.says ?? [])
        for (const answer of [ack, end, log]) {
          assert.isFalse(answer.isError)
          assertWellFormed(answer)
          assertNoCanary(JSON.stringify(answer))
        }
        fault.check?.(seen)
      }))
  }

  it.effect("none of these: the log has no secret, and no line that is not its own", () =>
    Effect.map(Played, ({ stderr }) => {
      assertNoCanary(stderr)
      for (const line of stderr.trim().split("\n")) if (line !== "") assert.match(line, /^timestamp=\S+ level=/)
    }))
})

const deep = 3_000
const deepNot = `${`{"not":`.repeat(deep)}${JSON.stringify(isDone)}${"}".repeat(deep)}`
const deepAnd = `${`{"and":[`.repeat(deep)}${JSON.stringify(isDone)}${"]}".repeat(deep)}`

/** parameters over good ones, and what the refusal says */
const refused: ReadonlyArray<
  readonly [params: Readonly<Record<string, unknown>>, ...says: ReadonlyArray<string | RegExp>]
> = [
  [{ interval: 2_592_000_000 }, "\"interval\"", "2147483647"],
  [{ timeout: 2 ** 31 }, "\"timeout\"", "2147483647"],
  [{ interval: -1 }, "\"interval\""],
  [{ timeout: -0.5 }, "\"timeout\""],
  [{ interval: "5s" }, "\"interval\"", "5s"],
  [{ interval: "" }, "\"interval\""],
  [{ interval: true }, "\"interval\""],
  [{ interval: [] }, "\"interval\""],
  [{ interval: "1e999" }, "\"interval\""],
  [{ max_errors: -1 }, "\"max_errors\""],
  [{ max_errors: 1.5 }, "\"max_errors\""],
  [{ max_errors: 1e21 }, "\"max_errors\""],
  [{ server: "" }, "\"server\""],
  [{ tool: " " }, "\"tool\""],
  [{ server: 5 }, "\"server\""],
  [{ untli: isDone }, "\"untli\" is not a parameter"],
  [{ constructor: 1 }, "\"constructor\" is not a parameter"],
  [{ [hostile]: 1 }, "is not a parameter"],
  [{ server: hostile }, "There is no server"],
  [{ until: hostile }, "\"until\""],
  [{ until: { is: hostile, value: 1 } }, "until"],
  [{ until: { path: hostile, is: "eq", value: 1 } }, "until"],
  [{ until: { is: "eq" } }, "until", "value"],
  [{ until: { is: "equals", value: 1 } }, "\"equals\""],
  [{ until: { and: [] } }, "until"],
  [{ until: { ...isDone, not: isDone } }, "until"],
  [{ until: { is: "match", value: "([" } }, "until"],
  [{ until: { is: "gt", value: "abc" } }, "until"],
  [{ until: { path: "jobs[*].status", is: "eq", value: 1 } }, "until"],
  [{ until: JSON.parse(`{"__proto__": {"is": "exists", "value": true}}`) }, "until"],
  [{ fail_when: "not json" }, "\"fail_when\""],
  [{ args: "not json" }, "\"args\""],
  [{ args: "[1]" }, "\"args\""]
]

const accepted: ReadonlyArray<readonly [params: Readonly<Record<string, unknown>>, ...says: ReadonlyArray<string>]> = [
  [{ interval: 2_147_483_647 }, "**Interval:** 2147483647 ms"],
  [{ interval: "2e3" }, "**Interval:** 2000 ms"],
  [{ interval: 0.5 }, "raised from 0.5 ms"],
  [{ interval: null }, "**Interval:** 5000 ms"],
  [{ timeout: 0 }, "**Timeout:** none"],
  [{ timeout: 1 }, "**Timeout:** 5000 ms (raised from 1 ms"],
  [{ timeout: 2_147_483_647 }, "**Timeout:** 2147483647 ms"],
  [{ max_errors: 0 }],
  [{ args: JSON.parse(`{"__proto__": {"a": 1}, "n": 12345678901234567890}`) }]
]

describe("an agent", () => {
  it.scopedLive("that sends strange input gets a text that says what would be right", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [running] }, done: { steps: [done] } } })
      const cli = yield* startCli({ servers: { jobs } })
      const good = { server: "jobs", tool: "look", until: isDone }
      for (const [params, ...words] of refused) {
        const answer = yield* cli.call("mcp_sentinel_poll", { ...good, ...params })
        assert.isTrue(answer.isError, `${JSON.stringify(params)}: ${answer.text}`)
        says(answer.text, /^Error: /, ...words)
        assert.isBelow(answer.text.length, 4_000)
        assert.notMatch(answer.text, controls)
      }
      assert.strictEqual(jobs.calls(), 0)
      for (const [params, ...words] of accepted) {
        const answer = yield* cli.call("mcp_sentinel_poll", { ...good, ...params })
        assert.isFalse(answer.isError, answer.text)
        says(answer.text, ...words)
        yield* cli.call("mcp_sentinel_status", { id: idOf(answer), action: "cancel" })
      }
      for (const until of [JSON.parse(deepNot), deepNot, deepAnd]) {
        const answer = yield* poll(cli, { server: "jobs", tool: "done", until })
        if (answer.isError) says(answer.text, /^Error: .*until/)
        else assert.strictEqual((yield* attach(cli, idOf(answer))).structured["status"], "completed")
      }
      const id = idOf(yield* poll(cli, good))
      for (const range of [{ offset: -1 }, { limit: 0 }, { limit: 1.5 }, { offset: "x" }]) {
        const answer = yield* cli.call("mcp_sentinel_read", { id, ...range })
        assert.isTrue(answer.isError)
      }
      says((yield* cli.call("mcp_sentinel_read", { id, offset: 9_007_199_254_740_991 })).text, "Nothing at offset")
      for (const tool of ["mcp_sentinel_status", "mcp_sentinel_attach", "mcp_sentinel_read"]) {
        const unknown = yield* cli.call(tool, { id: hostile })
        assert.isTrue(unknown.isError)
        assert.notMatch(unknown.text, controls)
      }
      assert.strictEqual(
        (yield* waitFor(cli, { server: "jobs", tool: "done", until: isDone })).structured["status"],
        "completed"
      )
    }), 120_000)

  it.scopedLive("whose host never reads stderr is served all the same", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [{ ...running, stderr: 500_000 }, done] } } })
      const broken = Object.fromEntries(
        Array.from({ length: 3_000 }, (_, index) => [`broken${index}`, { command: index }])
      )
      const cli = yield* startCli({ servers: { ...broken, jobs }, readsStderr: false, args: ["--log-level", "trace"] })
      const end = yield* waitFor(cli, { server: "jobs", tool: "look", until: isDone })
      assert.strictEqual(end.structured["status"], "completed")
      assert.isFalse((yield* status(cli, idOf(end))).isError)
    }), 120_000)

  it.scopedLive(
    "that asks for a repeated refusal of a hostile list sees no control character",
    () =>
      Effect.gen(function*() {
        const jobs = yield* stdioJobs({ tools: Object.fromEntries([[hostile, { steps: [done] }]]) })
        const cli = yield* startCli({ servers: { jobs } })
        yield* waitFor(cli, { server: "jobs", tool: "look", until: isDone })
        const again = yield* poll(cli, { server: "jobs", tool: "look", until: isDone })
        says(again.text, "no tool \"look\"")
        assert.notMatch(again.text, controls)
        assert.lengthOf(again.text.split("\n").filter((line) => line.startsWith("## ")), again.isError ? 0 : 1)
      }),
    120_000
  )
})
