import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { type Binary, tarball } from "./Binaries.js"

/** Unpacks the packed command, which needs no other package, and gives how to run it. */
export const unpackCli = (folder: string): Binary => {
  mkdirSync(folder, { recursive: true })
  execFileSync("tar", ["-xzf", tarball("cli"), "-C", folder])
  return { command: process.execPath, args: [join(folder, "package/dist/bin.mjs")] }
}
