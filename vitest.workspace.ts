import { fileURLToPath } from "node:url"
import type { TestProjectConfiguration } from "vitest/config"

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Tests read the sources of the workspace's own packages, so that a unit test never needs a build. */
export const alias = [
  { find: /^@gcszhn\/mcp-sentinel-core$/, replacement: source("./packages/core/src/index.ts") },
  { find: /^@gcszhn\/mcp-sentinel-core\/(.*)$/, replacement: source("./packages/core/src/$1.ts") },
  { find: /^@gcszhn\/mcp-sentinel-testkit\/(.*)$/, replacement: source("./packages/testkit/src/$1.ts") }
]

/** Real processes on a machine that others use: in CI a test has failed when it fails three times. */
export const retry = process.env["CI"] === undefined ? 0 : 2

const projects: ReadonlyArray<TestProjectConfiguration> = ["core", "cli", "opencode", "deepseek-harness", "testkit"]
  .map((name) => ({
    resolve: { alias },
    test: { name, root: source(`./packages/${name}`), include: ["test/**/*.test.ts"], testTimeout: 30_000, retry }
  }))

export default projects
