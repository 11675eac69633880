import { existsSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { bundleAll } from "../bundle.mjs"
import { nodeCommand, run } from "./process.mjs"
import { filesUnder, packages, root } from "./workspace.mjs"

const libraries = ["core", "testkit"]

const bundled = ["cli", "opencode", "deepseek-harness"]

const ownsSource = ({ dir }) => filesUnder(join(dir, "src"), ".ts").length > 0

/** tsc never deletes: what stays of a source file that is gone would be shipped. */
const removeOrphans = ({ dir }) => {
  const dist = join(dir, "dist")
  for (const ending of [".js", ".js.map", ".d.ts", ".d.ts.map"]) {
    for (const file of filesUnder(dist, ending)) {
      const source = join(dir, "src", `${relative(dist, file).slice(0, -ending.length)}.ts`)
      if (!existsSync(source)) rmSync(file)
    }
  }
}

/** Compiles core and testkit, then makes the bundles of whatever hosts start; resolves to the exit code. */
export const build = async () => {
  const withSource = packages.filter(ownsSource).map(({ name }) => name)
  const wanted = [...libraries, ...bundled].filter((name) => withSource.includes(name))
  const code = await run(...nodeCommand("typescript/bin/tsc", "-b", ...wanted.map((name) => `packages/${name}`)))
  if (code !== 0) return code
  for (const name of libraries) removeOrphans({ dir: join(root, "packages", name) })
  return bundleAll()
}
