import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { tarball } from "./Binaries.js"

/** Unpacks the packed plugin, as an installation would, and gives the entry for opencode's `plugin` list. */
export const unpackPlugin = (folder: string): string => {
  mkdirSync(folder, { recursive: true })
  execFileSync("tar", ["-xzf", tarball("opencode-plugin"), "-C", folder])
  return `file://${join(folder, "package")}`
}
