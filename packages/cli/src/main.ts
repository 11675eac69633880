import { greet } from "./Greeting.js"
import { fastMcpOptions } from "./Options.js"

/** Runs the command line, and ends the process with its exit code. */
export const main = async (argv: ReadonlyArray<string>): Promise<void> => {
  const options = fastMcpOptions(argv.slice(2))
  if (options === undefined) return (await import("./Cli.js")).run(argv)
  const { stdin, stdout } = process
  const greeting = await greet(stdin, stdout)
  if (greeting !== false) (await import("./Mcp.js")).run(options, { stdin, stdout, ...greeting })
}
