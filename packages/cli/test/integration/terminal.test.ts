import { assert, it } from "@effect/vitest"
import { stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const bin = fileURLToPath(new URL("../../dist/bin.mjs", import.meta.url))

const until = JSON.stringify({ path: "status", is: "eq", value: "done" })

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "mcp-sentinel-terminal-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A job that is done at its fourth look, as an argument list of `wait`. */
const waiting = (...more: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const steps = [{ json: { status: "running" }, repeat: 3 }, { json: { status: "done", n: 4 } }]
    const { args, command } = yield* stdioJobs({ tools: { look: { steps } } })
    const config = join(yield* folder, "mcp.json")
    writeFileSync(config, JSON.stringify({ mcpServers: { jobs: { command, args } } }))
    return [bin, "wait", "jobs", "look", "--mcp-config", config, "--interval", "300", ...more]
  })

const options = { encoding: "utf8", timeout: 30_000 } as const

const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`

it.scopedLive("wait prints plain lines and the final value where there is no terminal", () =>
  Effect.gen(function*() {
    const { status, stderr, stdout } = spawnSync(process.execPath, yield* waiting("--until", until), options)
    assert.strictEqual(status, 0, stderr)
    assert.strictEqual(stdout, "{\"status\":\"done\",\"n\":4}\n")
    assert.match(stderr, /^poll 1, .*running.*\n[^]*completed after 4 polls/m)
    assert.notInclude(stderr, "\u001b")
  }))

it.scopedLive("wait replaces one line on a terminal, and leaves the value", (context) =>
  Effect.gen(function*() {
    if (spawnSync("script", ["--version"]).error !== undefined) {
      return context.skip("there is no script(1) here to make a pseudo-terminal")
    }
    const line = [process.execPath, ...(yield* waiting("--until", until))].map(quote).join(" ")
    const { status, stdout } = spawnSync("script", ["-qec", line, "/dev/null"], options)
    assert.strictEqual(status, 0, stdout)
    const screen = stdout.replaceAll("\u001b", "ESC")
    assert.match(screen, /ESC\[2KESC\[1Gpoll 1, [^\n]*ESC\[2KESC\[1Gpoll 2, /)
    assert.match(screen, /ESC\[1G\{"status":"done","n":4\}\r\ncompleted after 4 polls/)
  }))

it.scopedLive("wait tells how it ended by its exit code", () =>
  Effect.gen(function*() {
    const code = Effect.fnUntraced(function*(...more: ReadonlyArray<string>) {
      return spawnSync(process.execPath, yield* waiting(...more), options).status
    })
    const never = JSON.stringify({ path: "status", is: "eq", value: "never" })
    const failed = JSON.stringify({ path: "status", is: "eq", value: "running" })
    assert.strictEqual(yield* code("--until", until, "--fail-when", failed), 1)
    assert.strictEqual(yield* code("--until", never, "--timeout", "700"), 124)
    assert.strictEqual(yield* code("--until", "{"), 2)
  }))

it("check-condition judges a sample from stdin", () => {
  const check = (input: string) => spawnSync(process.execPath, [bin, "check-condition", until], { ...options, input })
  assert.deepInclude(check("{\"status\":\"done\"}"), { status: 0, stdout: "holds: status is \"done\"\n" })
  const missing = check("{\"state\":1}")
  assert.strictEqual(missing.status, 1)
  assert.match(missing.stdout, /^undecided: path "status" not found; keys there: state/)
})
