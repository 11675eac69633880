import { setFlagsFromString } from "node:v8"
import { greet } from "./Greeting.js"
import { fastMcpOptions } from "./Options.js"

/**
 * A sentinel runs in the background for hours, and many may: garbage is collected when the heap has grown by 80 %, where
 * V8 by itself waits for a multiple. Costs CPU time only under a load of hundreds of polls a second.
 */
const keepSmall = () => setFlagsFromString("--heap-growing-percent=80")

/** Runs the command line, and ends the process with its exit code. */
export const main = async (argv: ReadonlyArray<string>): Promise<void> => {
  const options = fastMcpOptions(argv.slice(2))
  if (options === undefined) return (await import("./Cli.js")).run(argv)
  keepSmall()
  const { stdin, stdout } = process
  const greeting = await greet(stdin, stdout)
  if (greeting !== false) (await import("./Mcp.js")).run(options, { stdin, stdout, ...greeting })
}
