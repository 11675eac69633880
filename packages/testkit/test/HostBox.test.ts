import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { eventually, makeHostBox, processesIn, startIn } from "../src/HostBox.js"

const orphan = `require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], `
  + `{ detached: true, stdio: "ignore" }).unref()`

it.live("kills what outlives the harness, and removes its files", () =>
  Effect.gen(function*() {
    const root = yield* Effect.scoped(Effect.gen(function*() {
      const box = yield* makeHostBox("box")
      const parent = yield* startIn(box, { command: process.execPath, args: ["-e", orphan] })
      assert.deepStrictEqual(yield* parent.ended, { code: 0, signal: null })
      assert.strictEqual((yield* processesIn(box)).length, 1)
      return box
    }))
    assert.deepStrictEqual(yield* processesIn(root), [])
    assert.isFalse(existsSync(root.root))
  }))

it.scopedLive("gives a program nothing of the test's environment, and its input", () =>
  Effect.gen(function*() {
    process.env["BOX_LEAK"] = "secret"
    const box = yield* makeHostBox("box")
    const script =
      `process.stdin.on("data", (text) => console.log(process.env.BOX_LEAK, process.env.HOME, String(text)))`
    const echo = yield* startIn(box, { command: process.execPath, args: ["-e", script], stdin: "hello" })
    yield* echo.ended
    assert.strictEqual(echo.stdout(), `undefined ${box.home} hello\n`)
  }))

it.scopedLive("stops a program by a signal and tells how it ended", () =>
  Effect.gen(function*() {
    const box = yield* makeHostBox("box")
    const sleeper = yield* startIn(box, { command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"] })
    assert.deepStrictEqual(yield* sleeper.stop("SIGTERM"), { code: null, signal: "SIGTERM" })
    const failure = yield* Effect.flip(startIn(box, { command: "/nonexistent", args: [] }))
    assert.include(failure.message, "/nonexistent")
    const late = yield* Effect.flip(eventually(Effect.void, "120 millis", () => "nothing came"))
    assert.strictEqual(late.message, "nothing came")
  }))
