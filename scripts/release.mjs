import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { packAll } from "./lib/pack.mjs"
import { passSignalsThrough, pnpmCommand, run } from "./lib/process.mjs"
import { published, rootManifest } from "./lib/workspace.mjs"

const usage = `usage: npm run release -- --dry-run | --publish [--tag v${rootManifest.version}]`

const showTarballs = async () => {
  const folder = mkdtempSync(join(tmpdir(), "mcp-sentinel-release-"))
  try {
    for (const { contents, name } of await packAll(folder)) {
      console.log(`${name}@${rootManifest.version}\n${contents.map((path) => `  ${path}`).join("\n")}`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const publish = () => {
  const filters = published.flatMap(({ manifest }) => ["--filter", manifest.name])
  const [npx, args] = pnpmCommand("-r", ...filters, "publish", "--provenance", "--access", "public", "--no-git-checks")
  return run(npx, args)
}

const wrongTag = (args) => {
  const at = args.indexOf("--tag")
  const tag = at < 0 ? undefined : args[at + 1] ?? ""
  return tag === undefined || tag === `v${rootManifest.version}` ? undefined : tag
}

const main = async (args) => {
  const known = args.filter((arg, index) =>
    ["--dry-run", "--publish", "--tag"].includes(arg) || args[index - 1] === "--tag"
  )
  if (known.length !== args.length || args.includes("--dry-run") === args.includes("--publish")) {
    console.error(usage)
    return 2
  }
  const tag = wrongTag(args)
  if (tag !== undefined) {
    console.error(`the tag is "${tag}", the packages' version ${rootManifest.version}: they must agree`)
    return 1
  }
  await showTarballs()
  return args.includes("--publish") ? publish() : 0
}

passSignalsThrough()
process.exitCode = await main(process.argv.slice(2))
