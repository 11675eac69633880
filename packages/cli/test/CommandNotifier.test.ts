import { assert, describe, it } from "@effect/vitest"
import { Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import type { Notice } from "@gcszhn/mcp-sentinel-core/Notifier"
import { TaskId } from "@gcszhn/mcp-sentinel-core/SentinelTask"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as CommandNotifier from "../src/CommandNotifier.js"
import { NotifierCommands } from "../src/CommandNotifier.js"
import type { Harness } from "../src/Options.js"
import type { Host } from "./support.js"
import { ancestor, folder, host } from "./support.js"

const path = `${dirname(process.execPath)}:/usr/bin:/bin`
const thread = "019a0000-1111-7222-8333-444455556666"

/** Writes what it got, and its environment, into the file that its first argument names. */
const recorder = `#!/usr/bin/env node
const { appendFileSync } = require("node:fs")
const [file, ...args] = process.argv.slice(2)
appendFileSync(file, JSON.stringify({ args, env: process.env }) + "\\n")
`

const notice = (text: string, more: Partial<Notice> = {}): Notice => ({
  id: TaskId.make("sentinel_1"),
  title: "Sentinel Complete",
  origin: {},
  text,
  ...more
})

const hostile = [
  `'; touch pwned; '`,
  `"; touch pwned; "`,
  "`touch pwned`",
  "$(touch pwned)",
  "a\nb\r\n; touch pwned\n",
  "{} {} $& $1 $HOME",
  "--message -rf / \\",
  "| touch pwned > pwned && touch pwned #",
  "\u202e emoji \ud83d\ude00 \ud800 lone"
]

interface Records {
  readonly args: ReadonlyArray<string>
  readonly env: Record<string, string>
}

const records = (file: string): ReadonlyArray<Records> =>
  existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line)) : []

const withNotifier = <A, E>(
  use: (
    cwd: string,
    notifier: typeof Notifier.Service,
    commands: typeof NotifierCommands.Service
  ) => Effect.Effect<A, E>,
  given: Host = {},
  harness: Harness = "custom"
) =>
  Effect.gen(function*() {
    const cwd = yield* folder({ "rec.js": recorder, "fail.sh": "#!/bin/sh\necho no way >&2\nexit 3\n" })
    const layer = CommandNotifier.layer(harness).pipe(
      Layer.provide(host({ cwd, ...given, env: { PATH: `${cwd}:${path}`, ...given.env } }))
    )
    return yield* Effect.flatMap(Effect.all([Notifier, NotifierCommands]), ([notifier, commands]) =>
      use(cwd, notifier, commands)).pipe(Effect.provide(layer))
  }).pipe(Effect.scoped)

describe("CommandNotifier", () => {
  it.live(
    "gives a hostile notice as one literal argument, with and without a shell",
    () =>
      withNotifier((cwd, notifier, commands) =>
        Effect.gen(function*() {
          const id = yield* commands.set([
            `${cwd}/rec.js direct.log {}`,
            `${cwd}/rec.js option.log --message={} end`,
            `sh -c '"$0" shell.log "$1" && printf "%s" "$1" > last.txt' ${cwd}/rec.js {}`
          ])
          for (const [index, text] of hostile.entries()) {
            yield* notifier.notify(notice(text, { id: TaskId.make(`sentinel_${index}`), notifierId: id }))
          }
          // a lone surrogate has no bytes: the system replaces it on the way
          const arrived = hostile.map((text) => text.replace("\ud800", "\ufffd"))
          assert.deepStrictEqual(
            records(join(cwd, "direct.log")).map(({ args }) => args),
            arrived.map((text) => [text])
          )
          assert.deepStrictEqual(
            records(join(cwd, "option.log")).map(({ args }) => args),
            arrived.map((text) => [`--message=${text}`, "end"])
          )
          assert.deepStrictEqual(records(join(cwd, "shell.log")).map(({ args }) => args), arrived.map((text) => [text]))
          assert.strictEqual(readFileSync(join(cwd, "last.txt"), "utf8"), arrived.at(-1))
          assert.isFalse(existsSync(join(cwd, "pwned")))
        })
      ),
    60_000
  )

  it.live("hands on the environment without the guard and the own mark", () =>
    withNotifier((cwd, notifier, commands) =>
      Effect.gen(function*() {
        const id = yield* commands.set([`${cwd}/rec.js out.log {}`])
        yield* notifier.notify(notice("x", { notifierId: id }))
        const { env } = records(join(cwd, "out.log"))[0]!
        assert.strictEqual(env.KEEP, "1")
        assert.doesNotHaveAnyKeys(env, ["MCP_SENTINEL_DEPTH", "MCP_SENTINEL_ID"])
      }), { env: { KEEP: "1", MCP_SENTINEL_DEPTH: "1", MCP_SENTINEL_ID: "me" } }))

  it.live("runs the commands in order, goes on after one that fails, and repeats only that one", () =>
    withNotifier((cwd, notifier, commands) =>
      Effect.gen(function*() {
        const id = yield* commands.set([
          `${cwd}/rec.js out.log first {}`,
          `${cwd}/flaky.sh {}`,
          `${cwd}/rec.js out.log last {}`
        ])
        const failure = yield* Effect.flip(notifier.notify(notice("x", { notifierId: id })))
        assert.strictEqual(failure.certainty, "failed")
        assert.include(failure.message, "flaky.sh could not be started")
        writeFileSync(join(cwd, "flaky.sh"), `#!/bin/sh\nexec ${cwd}/rec.js out.log again "$1"\n`, { mode: 0o755 })
        yield* notifier.notify(notice("x", { notifierId: id }))
        assert.deepStrictEqual(records(join(cwd, "out.log")).map(({ args }) => args[0]), ["first", "last", "again"])
      })
    ))

  it.live("tells exit code and words of a failing command", () =>
    withNotifier((cwd, notifier, commands) =>
      Effect.gen(function*() {
        const id = yield* commands.set([`${cwd}/fail.sh {}`])
        const failure = yield* Effect.flip(notifier.notify(notice("x", { notifierId: id })))
        assert.deepInclude(failure, { certainty: "failed", message: "exit code 3: no way" })
      })
    ))

  it.live("keeps two notifiers apart, and refuses an id that does not exist", () =>
    withNotifier((cwd, notifier, commands) =>
      Effect.gen(function*() {
        const one = yield* commands.set([`${cwd}/rec.js one.log {}`])
        const two = yield* commands.set([`${cwd}/rec.js two.log {}`])
        assert.notStrictEqual(one, two)
        yield* notifier.notify(notice("for two", { notifierId: two }))
        assert.isFalse(existsSync(join(cwd, "one.log")))
        assert.deepStrictEqual(records(join(cwd, "two.log")).map(({ args }) => args), [["for two"]])
        const refused = yield* Effect.flip(notifier.accept({ origin: {}, notifierId: "notifier_0" }))
        assert.include(refused.message, `"notifier_0"`)
      })
    ))

  it.effect("refuses a bad template by its place, and keeps nothing of the call", () =>
    withNotifier((_, __, commands) =>
      Effect.gen(function*() {
        const refused = yield* Effect.flip(commands.set(["ok {}", "sh -c 'echo {}'"]))
        assert.include(refused.message, "commands[1] would run the notice as code")
      })
    ))

  it.effect("says whether somebody will be told", () =>
    withNotifier((cwd, notifier, commands) =>
      Effect.gen(function*() {
        const none = yield* notifier.accept({ origin: {} })
        assert.isFalse(none.notifies)
        assert.include(none.advice, "mcp_sentinel_attach")
        const id = yield* commands.set([`${cwd}/rec.js {}`])
        const some = yield* notifier.accept({ origin: {}, notifierId: id })
        assert.isTrue(some.notifies)
        assert.include(some.advice, "rec.js")
        const auto = yield* Effect.flip(notifier.accept({ origin: { session: thread }, notifierId: "auto" }))
        assert.include(auto.message, "mcp_sentinel_set_notifier_commands")
      })
    ))

  const oneShots: ReadonlyArray<readonly [harness: Harness, argv: ReadonlyArray<string>, name: string]> = [
    ["codex", ["codex", "exec", "hi"], "codex exec"],
    ["claude-code", ["claude", "-p", "hi"], "claude -p"],
    ["opencode", ["opencode", "run"], "opencode run"]
  ]
  for (const [harness, argv, name] of oneShots) {
    it.effect(`advises to attach in a one-shot run: ${name}`, () =>
      withNotifier(
        (_, notifier) =>
          Effect.gen(function*() {
            const { advice } = yield* notifier.accept({ origin: {} })
            assert.include(advice, name)
            assert.include(advice, "before you end your turn")
          }),
        { ancestors: [ancestor(argv)] },
        harness
      ))
  }

  it.live("auto runs the host's own command for the calling session, in the host's home", () =>
    Effect.gen(function*() {
      const bin = yield* folder({ codex: `#!/bin/sh\nprintf '%s\\n' "$CODEX_HOME" "$@" > "$0.log"\n` })
      const given: Host = { env: { PATH: `${bin}:${path}` }, ancestors: [ancestor(["codex"], { CODEX_HOME: "/else" })] }
      yield* withNotifier(
        (_, notifier, commands) =>
          Effect.gen(function*() {
            const recipient = { origin: { session: thread }, notifierId: "auto" }
            const { notifies } = yield* notifier.accept(recipient)
            assert.isTrue(notifies)
            yield* notifier.notify(notice("it's done", recipient))
            assert.deepStrictEqual(readFileSync(join(bin, "codex.log"), "utf8").trim().split("\n"), [
              "/else",
              "queue",
              "--thread",
              thread,
              "--message",
              "it's done"
            ])
            const { templates } = yield* commands.session({ session: thread })
            assert.include(templates[1], `codex exec resume`)
            const odd = yield* commands.session({ session: "x; rm -rf /" })
            assert.deepStrictEqual(odd.templates, [])
          }),
        given,
        "codex"
      )
    }).pipe(Effect.scoped))
})
