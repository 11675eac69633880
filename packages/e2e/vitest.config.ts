import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { alias, retry } from "../../vitest.workspace.js"

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** The plugin's sources, and for them too the DeepSeek Harness packages that are installed here: one copy of each. */
const deepseek = [
  { find: "@gcszhn/mcp-sentinel-deepseek-harness-plugin", replacement: path("../deepseek-harness/src/index.ts") },
  { find: /^@deepseek-ai\/(.*)$/, replacement: path("./node_modules/@deepseek-ai/$1") }
]

/** One file after the other: each of them starts whole harnesses, and their waits are judged by the clock. */
export default defineConfig({
  resolve: { alias: [...alias, ...deepseek] },
  test: {
    name: "e2e",
    root: path("."),
    include: ["test/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    retry,
    hookTimeout: 120_000,
    passWithNoTests: false
  }
})
