import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { httpJobs, stdioJobs } from "../JobServer.js"
import { type End, failWhen, noticesOf, type Scripted, scripted, seeded, untilDone } from "./faults.js"
import type { Figure } from "./Figure.js"
import { type Host, startHost, temporaryFolder } from "./Host.js"
import { handlesOf, usageOf } from "./Machine.js"

const minutes = 5
const seed = 20_260_731
const stdioServers = 4
const httpServers = 2
/** sentinels of one wave on each server */
const perServer = 4
const waves = 120

interface Planned extends Scripted {
  readonly server: string
  readonly tool: string
}

interface Told {
  readonly planned: Planned
  readonly id: string
  /** by what was planned to tell it */
  readonly outcome: string
  /** an attach that comes later tells the same end */
  readonly again: string
}

const toolName = (wave: number, index: number) => `w${wave}_${index}`

/** The scripts of one server for all waves. */
const plan = (random: () => number, server: string, kind: "stdio" | "http"): ReadonlyArray<ReadonlyArray<Planned>> =>
  Array.from({ length: waves }, (_, wave) =>
    Array.from({ length: perServer }, (_, index) => ({
      server,
      tool: toolName(wave, index),
      ...scripted(random, kind)
    })))

const toolsOf = (planned: ReadonlyArray<ReadonlyArray<Planned>>) => ({
  tools: Object.fromEntries(planned.flat().map(({ steps, tool }) => [tool, { steps }]))
})

const statusOf = (text: string): string => /\*\*Status:\*\* (\w+)/.exec(text)?.[1] ?? text.slice(0, 200)

/** Faults must not end what is to go on; the end itself is given up after two. */
const patienceOf = (end: End) => end === "error" ? 2 : 30

/** Notices as a command leaves them: each in a file of its own. */
const noticesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"))

const idIn = (text: string): string => /\*\*ID:\*\* (sentinel_[0-9a-f]+)/.exec(text)?.[1] ?? ""

/** ms that an end may take: the longest script, each look with its back-off */
const patience = 90_000

/** The status that the notice tells, or why there is none. */
const noticed = (folder: string, id: string) =>
  Effect.sync(() => noticesIn(folder).find((text) => idIn(text) === id)).pipe(
    Effect.tap((text) => text === undefined ? Effect.sleep(250) : Effect.void),
    Effect.repeat({ until: (text) => text !== undefined }),
    Effect.timeoutOption(patience),
    Effect.map(Option.getOrUndefined),
    Effect.map((text) => text === undefined ? `no notice within ${patience / 1000} s` : statusOf(text))
  )

interface Hosted {
  readonly host: Host
  readonly notifier: string
  readonly notices: string
}

const one = ({ host, notices, notifier }: Hosted, planned: Planned) =>
  Effect.gen(function*() {
    const id = yield* host.poll({
      server: planned.server,
      tool: planned.tool,
      interval: 1_000,
      ...(planned.end === "timeout" ? { timeout: 9_000 } : {}),
      until: untilDone,
      fail_when: failWhen,
      max_errors: patienceOf(planned.end),
      notifier_id: notifier
    })
    const attach = (timeout: number) => host.call("mcp_sentinel_attach", { id, timeout })
    if (planned.learnt === "abandoned attach") yield* Effect.timeoutOption(attach(patience), 500)
    if (planned.end === "cancelled") {
      yield* Effect.sleep(2_500)
      yield* host.call("mcp_sentinel_status", { action: "cancel", id })
    }
    const outcome = noticesOf(planned) === 1 ? yield* noticed(notices, id) : statusOf(yield* attach(patience))
    const again = statusOf(yield* attach(5_000))
    const told: Told = { planned, id, outcome, again }
    return told
  })

const childrenOf = (pid: number): ReadonlyArray<number> => {
  const all = execFileSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
  return all.flatMap(([child, parent]) => parent === pid && child !== undefined ? [child] : [])
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

interface Sample {
  readonly rss: number
  readonly handles: number
  readonly children: number
}

const sampleOf = (pid: number) =>
  Effect.map(
    Effect.all({ usage: usageOf(pid), handles: handlesOf(pid) }),
    ({ handles, usage }): Sample => ({ rss: usage.rss, handles, children: childrenOf(pid).length })
  )

const runWaves = Effect.fn("runWaves")(function*(
  hosted: Hosted,
  planned: ReadonlyArray<ReadonlyArray<ReadonlyArray<Planned>>>
) {
  const { host, notices } = hosted
  const until = performance.now() + minutes * 60_000
  const told: Array<Told> = []
  const samples: Array<Sample> = []
  for (let wave = 0; wave < waves && performance.now() < until; wave++) {
    const sentinels = planned.flatMap((server) => server[wave] ?? [])
    told.push(...yield* Effect.forEach(sentinels, (planned) => one(hosted, planned), { concurrency: "unbounded" }))
    samples.push(yield* sampleOf(host.pid))
  }
  const left = yield* host.call("mcp_sentinel_status", { action: "list" })
  // a second notice would be a repeat, which comes after a back-off
  yield* Effect.sleep("5 seconds")
  return { told, samples, left, notices: noticesIn(notices) }
})

/** What a few waves fill (caches, compiled code, the logs of tasks that are not forgotten yet) is no leak. */
const growth = (values: ReadonlyArray<number>): number => {
  const third = Math.max(1, Math.floor(values.length / 3))
  return Math.max(...values.slice(-third)) / Math.max(...values.slice(third, third * 2)) - 1
}

const report = (
  { left, notices, samples, told }: {
    told: ReadonlyArray<Told>
    samples: ReadonlyArray<Sample>
    left: string
    notices: ReadonlyArray<string>
  },
  orphans: number
): ReadonlyArray<Figure> => {
  const scenario = "soak"
  const wrong = told.filter(({ outcome, planned }) => outcome !== planned.end)
  const twice = told.filter(({ again, outcome }) => again !== outcome)
  const counts = new Map<string, number>()
  for (const text of notices) counts.set(idIn(text), (counts.get(idIn(text)) ?? 0) + 1)
  const miscounted = told.filter(({ id, planned }) => (counts.get(id) ?? 0) !== noticesOf(planned))
  const due = told.reduce((sum, { planned }) => sum + noticesOf(planned), 0)
  const active = Number(/\((\d+)\)/.exec(left)?.[1] ?? 0)
  return [
    { scenario, name: `sentinels under faults (seed ${seed})`, value: told.length, unit: "" },
    {
      scenario,
      name: "other end than the script demands",
      value: wrong.length,
      unit: "",
      atMost: 0,
      note: wrong.map(({ outcome, planned }) => `${planned.server}/${planned.tool}: ${outcome}, not ${planned.end}`)
        .join("; ")
    },
    { scenario, name: "end told in two ways", value: twice.length, unit: "", atMost: 0 },
    { scenario, name: `notices, of ${due} that are due`, value: notices.length, unit: "", atLeast: due, atMost: due },
    {
      scenario,
      name: "sentinels without exactly the one notice that is due, or with one that is not",
      value: miscounted.length,
      unit: "",
      atMost: 0,
      note: miscounted.map(({ id, planned }) =>
        `${planned.server}/${planned.tool} (${planned.end}, by ${planned.learnt}): ${counts.get(id) ?? 0}`
      ).join("; ")
    },
    { scenario, name: "sentinels left over", value: active, unit: "", atMost: 0 },
    { scenario, name: "processes left over", value: orphans, unit: "", atMost: 0 },
    {
      scenario,
      name: "child processes beyond one a server",
      value: Math.max(0, (samples.at(-1)?.children ?? 0) - stdioServers),
      unit: "",
      atMost: 0
    },
    {
      scenario,
      name: "growth of open handles",
      value: growth(samples.map(({ handles }) => handles)) * 100,
      unit: "%",
      atMost: 10
    },
    { scenario, name: "growth of RSS", value: growth(samples.map(({ rss }) => rss)) * 100, unit: "%", atMost: 10 }
  ]
}

/** Waves of sentinels under random faults, the same for the same seed, for five minutes. */
export const soak = Effect.gen(function*() {
  const random = seeded(seed)
  const stdioPlans = Array.from({ length: stdioServers }, (_, n) => plan(random, `stdio${n}`, "stdio"))
  const httpPlans = Array.from({ length: httpServers }, (_, n) => plan(random, `http${n}`, "http"))
  const stdio = yield* Effect.forEach(stdioPlans, (planned) => stdioJobs(toolsOf(planned)))
  const http = yield* Effect.forEach(httpPlans, (planned) => httpJobs(toolsOf(planned)))
  const entries = Object.fromEntries([
    ...stdio.map(({ args, command }, n) => [`stdio${n}`, { command, args }] as const),
    ...http.map(({ url }, n) => [`http${n}`, { type: "http" as const, url }] as const)
  ])
  const results = yield* Effect.scoped(
    Effect.gen(function*() {
      const host = yield* startHost(entries, { SENTINEL_TASK_TTL_MS: "10000" })
      const notices = yield* temporaryFolder
      const script = `sh -c 'printf %s "$1" > "$(mktemp ${notices}/XXXXXXXX)"' _ {}`
      const set = yield* host.call("mcp_sentinel_set_notifier_commands", { commands: [script] })
      const notifier = /notifier_[0-9a-f]+/.exec(set)?.[0]
      if (notifier === undefined) return yield* Effect.dieMessage(set)
      return yield* runWaves({ host, notifier, notices }, [...stdioPlans, ...httpPlans])
    })
  )
  yield* Effect.sleep("3 seconds")
  const orphans = stdio.flatMap((jobs) => jobs.pids()).filter(isAlive).length
  return report(results, orphans)
}).pipe(Effect.scoped)
