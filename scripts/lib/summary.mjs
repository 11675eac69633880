import { existsSync, readFileSync } from "node:fs"

const nothingRan = { passed: 0, failed: 1, skipped: 0 }

const brokenFiles = (report) =>
  report.testResults.filter(({ assertionResults, status }) =>
    status === "failed" && !assertionResults.some((test) => test.status === "failed")
  ).length

/**
 * Counts of one vitest run from its JSON report. A file that could not be loaded, a threshold that was missed and a run
 * that crashed or ran nothing count as a failure each, although no test failed.
 */
export const summaryOf = (reportFile, exitCode) => {
  if (!existsSync(reportFile)) return nothingRan
  const report = JSON.parse(readFileSync(reportFile, "utf8"))
  const passed = report.numPassedTests
  const failed = report.numFailedTests + brokenFiles(report)
  const skipped = report.numPendingTests + (report.numTodoTests ?? 0)
  if (failed === 0 && (exitCode !== 0 || passed === 0)) return { passed, failed: 1, skipped }
  return { passed, failed, skipped }
}

/** The line that `.ci/run` adds up: `[test] 12 passed, 0 failed`. */
export const summaryLine = (command, { failed, passed, skipped = 0 }) =>
  `[${command}] ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`
