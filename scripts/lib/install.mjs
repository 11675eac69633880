import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pnpmCommand, run } from "./process.mjs"
import { packages, root } from "./workspace.mjs"

const stampFile = (dir) => join(dir, "node_modules", ".installed-from")

const stampOf = (dir, manifests) => {
  const hash = createHash("sha256")
  for (const file of [join(dir, "pnpm-lock.yaml"), join(dir, "pnpm-workspace.yaml"), ...manifests]) {
    hash.update(readFileSync(file)).update("\0")
  }
  return hash.digest("hex")
}

const installed = (dir, stamp) => existsSync(stampFile(dir)) && readFileSync(stampFile(dir), "utf8") === stamp

const install = async (dir, manifests) => {
  const stamp = stampOf(dir, manifests)
  if (installed(dir, stamp)) return
  const [npx, args] = pnpmCommand("install", "--frozen-lockfile", "--config.confirmModulesPurge=false")
  const code = await run(npx, args, { cwd: dir })
  if (code !== 0) throw new Error(`pnpm install in ${dir} ended with ${code}`)
  writeFileSync(stampFile(dir), stamp)
}

/** Installs the workspace from its lock file; at once when nothing that it depends on has changed since. */
export const installWorkspace = () =>
  install(root, [
    join(root, "package.json"),
    join(root, "scratchpad", "package.json"),
    ...packages.filter(({ name }) => name !== "e2e").map(({ dir }) => join(dir, "package.json"))
  ])

/** Installs the real harness binaries (about 1.3 GB), which have a lock file of their own. */
export const installHarnesses = () => {
  const dir = join(root, "packages", "e2e")
  return install(dir, [join(dir, "package.json")])
}
