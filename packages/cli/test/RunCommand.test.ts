import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { runCommand } from "../src/RunCommand.js"
import { folder } from "./support.js"

const env = { PATH: "/usr/bin:/bin" }

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

/** A tree that ignores SIGTERM and writes its ids into `pids`. */
const stubborn = `#!/bin/sh
trap '' TERM
sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.1; done' &
echo $$ >> pids
while :; do sleep 0.1; done
`

const pids = (cwd: string) => readFileSync(join(cwd, "pids"), "utf8").trim().split("\n").map(Number)

const started = (cwd: string) =>
  Effect.sleep(50).pipe(
    Effect.repeat({ until: () => existsSync(join(cwd, "pids")) && pids(cwd).length === 2 }),
    Effect.timeout("5 seconds")
  )

describe("runCommand", () => {
  it.live("ends a whole tree that ignores SIGTERM at the time limit", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({ "stubborn.sh": stubborn })
      const failure = yield* Effect.flip(
        runCommand({ command: join(cwd, "stubborn.sh"), args: [], env, cwd, timeout: 800 })
      )
      assert.strictEqual(failure.kind, "timeout")
      yield* Effect.sleep(900)
      assert.deepStrictEqual(pids(cwd).map(alive), [false, false])
    }).pipe(Effect.scoped))

  it.live("ends the tree when it is interrupted", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({ "stubborn.sh": stubborn })
      const running = yield* Effect.fork(
        runCommand({ command: join(cwd, "stubborn.sh"), args: [], env, cwd, timeout: "1 minute" })
      )
      yield* started(cwd)
      assert.deepStrictEqual(pids(cwd).map(alive), [true, true])
      yield* Fiber.interrupt(running)
      yield* Effect.sleep(900)
      assert.deepStrictEqual(pids(cwd).map(alive), [false, false])
    }).pipe(Effect.scoped))

  it.live("does not wait for what a command leaves in the background", () =>
    Effect.gen(function*() {
      const begun = Date.now()
      const result = yield* runCommand({
        command: "sh",
        args: ["-c", "sleep 5 & echo out; echo err >&2; exit 4"],
        env,
        timeout: "10 seconds"
      })
      assert.deepStrictEqual(result, { exitCode: 4, signal: null, stdout: "out\n", stderr: "err\n" })
      assert.isBelow(Date.now() - begun, 2_500)
    }))

  it.live("tells a program that does not exist from one that cannot be started", () =>
    Effect.gen(function*() {
      const missing = yield* Effect.flip(runCommand({ command: "no-such-program", args: [], env, timeout: "1 second" }))
      assert.strictEqual(missing.kind, "not found")
      const cwd = yield* folder({ plain: "text" })
      const plain = yield* Effect.flip(runCommand({ command: join(cwd, "plain"), args: [], env, timeout: "1 second" }))
      assert.strictEqual(plain.kind, "not started")
    }).pipe(Effect.scoped))
})
