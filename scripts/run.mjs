import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { installHarnesses, installWorkspace } from "./lib/install.mjs"
import { interruptedCode, nodeCommand, passSignalsThrough, run } from "./lib/process.mjs"
import { summaryLine, summaryOf } from "./lib/summary.mjs"
import { root } from "./lib/workspace.mjs"

/** Runs vitest; resolves to the counts of what ran. */
const vitest = async (args, env) => {
  const folder = mkdtempSync(join(tmpdir(), "mcp-sentinel-report-"))
  try {
    const report = join(folder, "report.json")
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`]
    const code = await run(...nodeCommand("vitest/vitest.mjs", "run", ...reporters, ...args), { env })
    return summaryOf(report, code)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const conclude = (name, summary) => {
  console.log(summaryLine(name, summary))
  return summary.failed === 0 ? 0 : 1
}

/** Loaded only after the install: they need esbuild and typescript. */
const build = async () => (await import("./lib/build.mjs")).build()

const afterBuild = (action) => async (args) => await build() || action(args)

const script = (path) => (args) => run(process.execPath, [join(root, path), ...args])

/** A filter selects some tests; the coverage of core is only judged over all of them. */
const test = async (args) => conclude("test", await vitest(args.length === 0 ? ["--coverage"] : args))

/** Part of e2e and not of check: the hosts' own types come with their binaries. */
const e2eTypes = async () => {
  const code = await run(...nodeCommand("typescript/bin/tsc", "-b", "packages/e2e"))
  console.log(code === 0 ? "ok     types of e2e" : "FAILED types of e2e")
  return code === 0
}

const e2e = async (args) => {
  const { packAll } = await import("./lib/pack.mjs")
  const tarballs = mkdtempSync(join(tmpdir(), "mcp-sentinel-tarballs-"))
  try {
    await packAll(tarballs)
    await installHarnesses()
    const types = await e2eTypes()
    const tests = await vitest(["--root", join(root, "packages", "e2e"), ...args], { MCP_SENTINEL_TARBALLS: tarballs })
    return conclude("e2e", {
      ...tests,
      passed: tests.passed + (types ? 1 : 0),
      failed: tests.failed + (types ? 0 : 1)
    })
  } finally {
    rmSync(tarballs, { recursive: true, force: true })
  }
}

const commands = {
  build,
  check: async () => (await import("./check.mjs")).check(),
  test: afterBuild(test),
  demo: afterBuild(script("packages/testkit/dist/demo/main.js")),
  e2e: afterBuild(e2e),
  bench: afterBuild(script("packages/testkit/dist/bench/main.js")),
  release: afterBuild(script("scripts/release.mjs"))
}

const main = async ([name, ...args]) => {
  const command = Object.hasOwn(commands, name ?? "") ? commands[name] : undefined
  if (command === undefined) {
    console.error(`usage: node scripts/run.mjs <${Object.keys(commands).join("|")}> [arguments]`)
    return 2
  }
  const started = performance.now()
  try {
    await installWorkspace()
    return await command(args)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    return 1
  } finally {
    console.error(`${name} took ${((performance.now() - started) / 1000).toFixed(1)} s`)
  }
}

passSignalsThrough()
const code = await main(process.argv.slice(2))
process.exitCode = interruptedCode() ?? code
