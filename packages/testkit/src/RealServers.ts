import { createRequire } from "node:module"
import { dirname, join } from "node:path"

const require = createRequire(import.meta.url)

/** The program of an official MCP server that nobody here wrote; start it with Node. */
const programOf = (name: string): string =>
  join(dirname(require.resolve(`@modelcontextprotocol/server-${name}/package.json`)), "dist", "index.js")

/** `[stdio | streamableHttp | sse]`, the latter two with `PORT` in the environment. */
export const everythingServer = programOf("everything")

/** `<folder>…` that may be read and written. */
export const filesystemServer = programOf("filesystem")

/** `MEMORY_FILE_PATH` in the environment. */
export const memoryServer = programOf("memory")
