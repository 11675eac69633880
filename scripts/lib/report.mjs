/** Prints what a check script found and sets the exit code: nothing found is silence and 0. */
export const report = (problems) => {
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
}
