import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, it } from "vitest"
import { modernNode } from "../src/Binaries.js"

/**
 * The suite runs dsh's packages in the test's own process, which takes Node 22.19. On an older Node this file runs itself
 * once more under the newer one, and reports that run's tests as its own.
 */
const here = fileURLToPath(import.meta.url)

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly message: string
    readonly assertionResults: ReadonlyArray<
      { readonly fullName: string; readonly status: string; readonly failureMessages: ReadonlyArray<string> }
    >
  }>
}

const runUnder = async (node: string): Promise<{ readonly report?: Report; readonly output: string }> => {
  const folder = mkdtempSync(join(tmpdir(), "mcp-sentinel-inproc-"))
  const file = join(folder, "report.json")
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs")
  const root = dirname(dirname(here))
  try {
    const output = await new Promise<string>((resolve) =>
      execFile(
        node,
        [vitest, "run", "--root", root, here, "--reporter=json", `--outputFile=${file}`],
        { env: { ...process.env, VITEST: "" }, maxBuffer: 64 * 1024 * 1024, timeout: 600_000 },
        (_, stdout, stderr) => resolve(stdout + stderr)
      )
    )
    try {
      return { report: JSON.parse(readFileSync(file, "utf8")), output }
    } catch {
      return { output }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const findNode = (): string | undefined => {
  try {
    return modernNode()
  } catch (error) {
    console.warn(
      `The in-process tests of DeepSeek Harness do not run: they need Node 22.19 or later, and ${String(error)}`
    )
    return undefined
  }
}

const node = findNode()
if (node === process.execPath) {
  await import("./dsh/inproc.js")
} else if (node === undefined) {
  it.skip("needs Node 22.19 or later", () => {})
} else {
  const { output, report } = await runUnder(node)
  const results = report?.testResults.flatMap((file) => file.assertionResults) ?? []
  const failures = report?.testResults.map((file) => file.message).filter((message) => message !== "") ?? []
  describe(`under ${node}`, () => {
    it("the suite ran", () => {
      if (results.length === 0) throw new Error([...failures, output].join("\n"))
    })
    for (const { failureMessages, fullName, status } of results) {
      it(fullName, () => {
        if (status !== "passed") throw new Error([status, ...failureMessages].join("\n"))
      })
    }
  })
}
