import { join } from "node:path"
import { capture, nodeCommand, pnpmCommand } from "./lib/process.mjs"
import { summaryLine } from "./lib/summary.mjs"
import { published, root } from "./lib/workspace.mjs"

const script = (file) => () => capture(process.execPath, [join(root, "scripts", file)])

const tool = (path, ...args) => () => capture(...nodeCommand(path, ...args))

const effectDiagnostics = ({ name }) => ({
  name: `Effect diagnostics of ${name}`,
  run: tool(
    "@effect/language-service/cli.js",
    "diagnostics",
    "--project",
    `packages/${name}/tsconfig.json`,
    "--format",
    "text",
    "--strict"
  )
})

const parsed = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What pnpm says when the registry is not there or has no audit: told, and no failure of the project. */
const unanswered = /ERR_PNPM_(AUDIT_\w+|META_FETCH_FAIL|FETCH_\w+)|ENOTFOUND|ECONNREFUSED|ETIMEDOUT/

/** Known holes of severity high or worse. */
const audit = async () => {
  const [npx, args] = pnpmCommand("audit", "--json", "--config.fetchRetries=0", "--config.fetchTimeout=20000")
  const { output, stdout } = await capture(npx, args)
  const found = parsed(stdout)?.metadata?.vulnerabilities
  if (found !== undefined) return { code: found.high + found.critical > 0 ? 1 : 0, output }
  const [reason] = unanswered.exec(output) ?? []
  return reason === undefined ? { code: 1, output } : { code: 0, note: `the registry did not answer (${reason})` }
}

const types = { name: "types", run: tool("typescript/bin/tsc", "-b") }

const rest = [
  ...published.map(effectDiagnostics),
  { name: "lint", run: tool("oxlint/bin/oxlint") },
  { name: "format", run: tool("dprint/bin.cjs", "check") },
  { name: "import direction", run: script("check-imports.mjs") },
  { name: "versions in step", run: script("check-versions.mjs") },
  { name: "package manifests", run: script("check-packages.mjs") },
  { name: "dependency audit", run: audit }
]

const perform = async ({ name, run }) => {
  const started = performance.now()
  const { code, note, output } = await run()
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)${note === undefined ? "" : `: ${note}`}`)
  if (code !== 0) console.log(output.trimEnd())
  return code === 0
}

/** Two at a time: more would only starve each other on a small machine. */
const performAll = async (checks) => {
  const waiting = [...checks]
  const results = []
  const worker = async () => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) results.push(await perform(check))
  }
  await Promise.all([worker(), worker()])
  return results
}

/** Runs every check, whatever the others say; resolves to the exit code. */
export const check = async () => {
  const results = [await perform(types), ...await performAll(rest)]
  const passed = results.filter((ok) => ok).length
  const summary = { passed, failed: results.length - passed }
  console.log(summaryLine("check", summary))
  return summary.failed === 0 ? 0 : 1
}
