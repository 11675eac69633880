import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { alias } from "../../vitest.workspace.js"

/** One file after the other: each of them starts whole harnesses, and their waits are judged by the clock. */
export default defineConfig({
  resolve: { alias: [...alias] },
  test: {
    name: "e2e",
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["test/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    passWithNoTests: false
  }
})
