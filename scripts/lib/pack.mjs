import { mkdirSync } from "node:fs"
import { basename, resolve } from "node:path"
import { capture, pnpmCommand } from "./process.mjs"
import { published } from "./workspace.mjs"

/**
 * Packs the published packages as the registry would get them (`workspace:` and `catalog:` replaced), under names without
 * a version: gcszhn-mcp-sentinel-cli.tgz. Needs a build.
 */
export const packAll = async (folder) => {
  const destination = resolve(folder)
  mkdirSync(destination, { recursive: true })
  const tarballs = []
  for (const { dir, manifest } of published) {
    const file = `${destination}/${manifest.name.replace("@", "").replace("/", "-")}.tgz`
    const [npx, args] = pnpmCommand("pack", "--json", "--out", file)
    const { code, output, stdout } = await capture(npx, args, { cwd: dir })
    if (code !== 0) throw new Error(`pnpm pack of ${manifest.name} ended with ${code}\n${output}`)
    const { files } = JSON.parse(stdout)
    tarballs.push({
      name: manifest.name,
      file,
      base: basename(file),
      contents: files.map(({ path }) => path).toSorted()
    })
  }
  return tarballs
}
