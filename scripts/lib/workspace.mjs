import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/[\\/]$/, "")

export const readJson = (path) => JSON.parse(readFileSync(path, "utf8"))

const packagesDir = join(root, "packages")

const folders = readdirSync(packagesDir).filter((name) => existsSync(join(packagesDir, name, "package.json")))
  .toSorted()

/** Every folder of packages/ that is a package: { name (of the folder), dir, manifest }. */
export const packages = folders.map((name) => {
  const dir = join(packagesDir, name)
  return { name, dir, manifest: readJson(join(dir, "package.json")) }
})

/** Those that go to the registry. */
export const published = packages.filter(({ manifest }) => manifest.private !== true)

export const rootManifest = readJson(join(root, "package.json"))

/** `pnpm@1.2.3`, as npx takes it. */
export const pnpm = rootManifest.packageManager

/** Every file under a folder whose name ends so, in a stable order; none when the folder is not there. */
export const filesUnder = (dir, ending) =>
  existsSync(dir)
    ? readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
      .toSorted()
    : []
