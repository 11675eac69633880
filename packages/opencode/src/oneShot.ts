/** Options of opencode itself whose value is a word of its own. */
const valued = new Set(["--log-level"])

/** Commands whose process ends with the agent's turn, whatever still waits. */
const oneShotCommands = new Set(["run", "github"])

/** Whether opencode was started with a command that ends with the turn; `words` are the arguments after the program. */
export const isOneShot = (words: ReadonlyArray<string>): boolean => {
  const command = words.find((word, index) => !word.startsWith("-") && !valued.has(words[index - 1] ?? ""))
  return command !== undefined && oneShotCommands.has(command)
}
