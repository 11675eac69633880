import { defineConfig } from "vitest/config"
import projects from "./vitest.workspace.js"

export default defineConfig({
  test: {
    projects: [...projects],
    passWithNoTests: false,
    maxWorkers: 2,
    minWorkers: 1,
    coverage: {
      provider: "v8",
      include: ["packages/core/src/**/*.ts"],
      reporter: ["text-summary", "lcovonly"],
      thresholds: { lines: 95, branches: 95 }
    }
  }
})
