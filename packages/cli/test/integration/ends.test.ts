import { assert, describe, it } from "@effect/vitest"
import { type CliClient, type CliOptions, startCli, vanished } from "@gcszhn/mcp-sentinel-testkit/CliClient"
import type { JobScript } from "@gcszhn/mcp-sentinel-testkit/JobScript"
import { httpJobs, type StdioJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { attach, done, idOf, isDone, poll, read, running, until, waitFor } from "./support.js"

/** How the command is told to end. `host`: the process that started it is killed. */
const ways: Readonly<Record<string, (cli: CliClient) => Effect.Effect<void>>> = {
  SIGTERM: (cli) => cli.signal("SIGTERM"),
  SIGINT: (cli) => cli.signal("SIGINT"),
  "SIGHUP, as when the terminal is closed": (cli) => cli.signal("SIGHUP"),
  // as hosts that ask again, each time more firmly, when the process is still there
  "the end of stdin, SIGTERM and SIGINT": (cli) =>
    Effect.all([cli.endStdin, Effect.delay(cli.signal("SIGTERM"), 100), Effect.delay(cli.signal("SIGINT"), 100)], {
      discard: true
    }),
  "SIGINT and SIGTERM": (cli) => Effect.zipRight(cli.signal("SIGINT"), Effect.delay(cli.signal("SIGTERM"), 100)),
  "the end of stdin": (cli) => cli.endStdin,
  "kill -9 of its host": (cli) => cli.signal("SIGKILL")
}

const optionsOf = (way: string): CliOptions => ({ behindHost: way === "kill -9 of its host" })

interface Phase {
  readonly script: JobScript
  /** brings the command there */
  readonly reach: (cli: CliClient, jobs: StdioJobs) => Effect.Effect<unknown, unknown>
}

const look = { server: "jobs", tool: "look", until: isDone }
const hang = { hang: true }

const seen = (jobs: StdioJobs, type: "initialize" | "call") =>
  until(Effect.sync(() => jobs.count(type)), (count) => count >= 1)

const phases: Readonly<Record<string, Phase>> = {
  "right after initialize": { script: {}, reach: () => Effect.void },
  "before any server was needed": { script: {}, reach: (cli) => cli.call("mcp_sentinel_status", { action: "list" }) },
  "with an idle connection": { script: { tools: { look: { steps: [done] } } }, reach: (cli) => waitFor(cli, look) },
  "while it connects": {
    script: { start: { hang: true } },
    reach: (cli, jobs) => Effect.zipRight(poll(cli, look), seen(jobs, "initialize"))
  },
  "with a call in flight": {
    script: { tools: { look: { steps: [hang] } } },
    reach: (cli, jobs) => Effect.zipRight(poll(cli, look), seen(jobs, "call"))
  },
  "while attach waits": {
    script: { tools: { look: { steps: [running] } } },
    reach: (cli, jobs) =>
      Effect.gen(function*() {
        const id = idOf(yield* poll(cli, look))
        yield* Effect.forkDaemon(Effect.ignore(attach(cli, id)))
        yield* seen(jobs, "call")
        yield* Effect.sleep(200)
      })
  }
}

/** ms that the machine may add to what a rule allows: ten starts of an empty program, as fast as they are just now */
const slack = Effect.async<number>((resume) => {
  const from = performance.now()
  spawn(process.execPath, ["-e", "0"]).once("exit", () => resume(Effect.succeed(10 * (performance.now() - from))))
})

/** Ends the command, and tells how many ms it took until nothing of its tree was left. */
const endBy = (way: string, cli: CliClient) =>
  Effect.gen(function*() {
    const from = performance.now()
    yield* ways[way]?.(cli) ?? Effect.dieMessage(way)
    const left = yield* vanished(cli.processes, 15_000)
    assert.deepStrictEqual(left, [])
    return performance.now() - from
  })

const assertExit = (way: string, cli: CliClient) =>
  Effect.map(cli.ended, ({ code, signal }) => {
    if (way !== "kill -9 of its host") assert.deepStrictEqual({ code, signal }, { code: 0, signal: null })
  })

describe.concurrent("the command ends, with all that it started, within 3 s", () => {
  for (const way of Object.keys(ways)) {
    for (const [phase, { reach, script }] of Object.entries(phases)) {
      it.scopedLive(`by ${way} ${phase}`, () =>
        Effect.gen(function*() {
          const jobs = yield* stdioJobs(script)
          const cli = yield* startCli({ ...optionsOf(way), servers: { jobs } })
          yield* reach(cli, jobs)
          const started = jobs.pids().length
          assert.isAtMost(yield* endBy(way, cli), 3_000 + (yield* slack))
          assert.lengthOf(jobs.pids(), started, "nothing may be started during the shutdown")
          if (phase !== "right after initialize") yield* assertExit(way, cli)
        }), 120_000)
    }
  }
})

const stubborn: JobScript = { tools: { look: { steps: [running] } }, ignoreEof: true, ignoreSigterm: true }

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

describe.concurrent("the command ends within 9 s, with children that ignore signals", () => {
  for (const way of Object.keys(ways)) {
    it.scopedLive(`by ${way}`, () =>
      Effect.gen(function*() {
        const plain = yield* stdioJobs(stubborn)
        const wrapped = yield* stdioJobs(stubborn)
        const line = [wrapped.command, ...wrapped.args].map(quoted).join(" ")
        const cli = yield* startCli({
          ...optionsOf(way),
          servers: { jobs: plain, wrapped: { command: "sh", args: ["-c", `${line}; true`] } }
        })
        yield* poll(cli, look)
        yield* poll(cli, { ...look, server: "wrapped" })
        yield* seen(plain, "call")
        yield* seen(wrapped, "call")
        assert.isAtMost(yield* endBy(way, cli), 9_000 + (yield* slack))
        assert.deepStrictEqual([plain.pids().length, wrapped.pids().length], [1, 1])
        yield* assertExit(way, cli)
      }), 120_000)
  }
})

/** A notifier command that ignores SIGTERM, as the process that it starts does, and never ends. */
const hanging = `trap '' TERM
echo started >> "$1"
sh -c 'trap "" TERM; while :; do sleep 1; done' &
while :; do sleep 1; done`

/** One that takes its time. */
const slow = `echo started >> "$1"
sleep 0.3
printf '%s\\n' "$2" >> "$1"`

/** Sets two commands that run `script`, and gives their ID and the files that they write to. */
const notifierOf = (cli: CliClient, script: string) =>
  Effect.gen(function*() {
    const program = join(cli.box.root, "notify.sh")
    writeFileSync(program, script)
    const files = [join(cli.box.root, "first"), join(cli.box.root, "second")]
    const commands = files.map((file) => `sh ${program} ${file} {}`)
    const { structured } = yield* cli.call("mcp_sentinel_set_notifier_commands", { commands })
    return { id: structured["notifier_id"], texts: () => files.map((file) => textOf(file)) }
  })

const textOf = (file: string) => existsSync(file) ? readFileSync(file, "utf8") : ""

/** A job that ends after the acknowledgement, so that its end is told by the notifier. */
const ending: JobScript = { tools: { look: { steps: [running, done] } } }

describe.concurrent("the command ends while a notifier command hangs, and leaves nothing of it", () => {
  for (const way of Object.keys(ways)) {
    for (const [bound, script] of [[3_000, ending], [9_000, { ...stubborn, ...ending }]] as const) {
      it.scopedLive(
        `by ${way}, within ${bound / 1000} s${script === ending ? "" : " with a stubborn child"}`,
        () =>
          Effect.gen(function*() {
            const jobs = yield* stdioJobs(script)
            const cli = yield* startCli({ ...optionsOf(way), servers: { jobs } })
            const notifier = yield* notifierOf(cli, hanging)
            yield* poll(cli, { ...look, notifier_id: notifier.id })
            yield* until(Effect.sync(() => notifier.texts()[0]), (text) => text === "started\n")
            assert.isAtMost(yield* endBy(way, cli), bound + (yield* slack))
            assert.deepStrictEqual(notifier.texts(), ["started\n", ""], "nothing may be started during the shutdown")
            assert.lengthOf(jobs.pids(), 1)
            yield* assertExit(way, cli)
          }),
        120_000
      )
    }
  }
})

describe.concurrent("a notice that is due just before the command ends is still delivered", () => {
  for (const way of Object.keys(ways)) {
    it.scopedLive(`by ${way}`, () =>
      Effect.gen(function*() {
        const jobs = yield* stdioJobs(ending)
        const cli = yield* startCli({ ...optionsOf(way), servers: { jobs } })
        const notifier = yield* notifierOf(cli, slow)
        const id = idOf(yield* poll(cli, { ...look, notifier_id: notifier.id }))
        yield* until(read(cli, id), ({ text }) => text.includes("**Status:** completed"))
        yield* endBy(way, cli)
        for (const text of notifier.texts()) {
          assert.match(text, /^started\n## Sentinel Complete\n/)
          assert.lengthOf(text.match(/^## /gm) ?? [], 1)
          assert.include(text, id)
        }
      }), 120_000)
  }
})

describe.concurrent("the command gives HTTP sessions back", () => {
  for (const way of Object.keys(ways)) {
    it.scopedLive(`by ${way}`, () =>
      Effect.gen(function*() {
        const jobs = yield* httpJobs({ tools: { look: { steps: [running] } } })
        const cli = yield* startCli({ ...optionsOf(way), servers: { jobs: { url: jobs.url } } })
        yield* poll(cli, look)
        yield* until(Effect.sync(() => jobs.calls()), (calls) => calls >= 1)
        assert.isAtMost(yield* endBy(way, cli), 3_000 + (yield* slack))
        const ids = (type: "session" | "delete") =>
          jobs.events().flatMap((event) => event.type === type && "id" in event ? [event.id] : [])
        assert.lengthOf(ids("session"), 1)
        assert.deepStrictEqual(ids("delete"), ids("session"))
      }), 120_000)
  }

  it.scopedLive("and waits for no answer to DELETE", () =>
    Effect.gen(function*() {
      const jobs = yield* httpJobs({ tools: { look: { steps: [hang] } }, http: { hangDelete: true } })
      const cli = yield* startCli({ servers: { jobs: { url: jobs.url } } })
      yield* poll(cli, look)
      yield* until(Effect.sync(() => jobs.calls()), (calls) => calls >= 1)
      assert.isAtMost(yield* endBy("SIGTERM", cli), 3_000 + (yield* slack))
      assert.strictEqual(jobs.count("delete"), 1)
    }), 120_000)
})

it.scopedLive("a host that closes its end of stdout ends the command too", () =>
  Effect.gen(function*() {
    const jobs = yield* stdioJobs({ tools: { look: { steps: [running] } } })
    const cli = yield* startCli({ servers: { jobs } })
    const id = idOf(yield* poll(cli, look))
    yield* cli.closeStdout
    yield* Effect.forkDaemon(Effect.ignore(attach(cli, id, 1_000)))
    assert.deepStrictEqual(yield* vanished(cli.processes, 8_000), [])
    assert.notMatch(cli.stderr(), /EPIPE|uncaught|at .*node:/i)
  }), 120_000)
