import { build } from "esbuild"
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { basename, join } from "node:path"
import { thirdPartyLicenses } from "./lib/licenses.mjs"
import { packages, root } from "./lib/workspace.mjs"

/** Splitting keeps heavy parts (`import()`) out of the start of a CLI command, and of the start of opencode. */
const targets = [
  { name: "cli", entry: "bin.ts", extension: ".mjs", splitting: true, shebang: true },
  { name: "opencode", entry: "plugin.ts", extension: ".js", splitting: true, shebang: false },
  { name: "deepseek-harness", entry: "index.ts", extension: ".js", splitting: false, shebang: false }
]

/** The hosts bring these themselves; a second copy would be another identity for their classes. */
const hostPackages = ["cordis", "@deepseek-ai/*", "@opencode-ai/*"]

/** CommonJS dependencies inside an ES module still call `require` for Node's own modules. */
const requireBanner =
  `import{createRequire as __createRequire}from"node:module";const require=__createRequire(import.meta.url);`

const shebang = "#!/usr/bin/env node\n"

const withShebang = (text) => text.startsWith("#!") ? text : shebang + text

const isEntry = (target, file) => basename(file) === basename(target.entry, ".ts") + target.extension

/** What a bundle still imports has to be Node's own or a peer that the host provides. */
const refuseLooseImports = (manifest, metafile) => {
  const peers = Object.keys(manifest.peerDependencies ?? {})
  const loose = Object.values(metafile.outputs).flatMap(({ imports }) => imports)
    .filter(({ external, path }) => external === true && !isBuiltin(path))
    .filter(({ path }) => !peers.some((peer) => path === peer || path.startsWith(`${peer}/`)))
  if (loose.length === 0) return
  const names = [...new Set(loose.map(({ path }) => path))].join(", ")
  throw new Error(
    `${manifest.name}: the bundle imports ${names}, which nobody would install; bundle it or declare a peer`
  )
}

/** Written only after everything was bundled, so that a program that runs meanwhile never finds half of it. */
const replaceOutputs = (target, dist, outputs, licenses) => {
  mkdirSync(dist, { recursive: true })
  for (const { path, text } of outputs) {
    writeFileSync(path, target.shebang && isEntry(target, path) ? withShebang(text) : text)
    if (target.shebang && isEntry(target, path)) chmodSync(path, 0o755)
  }
  writeFileSync(join(dist, "THIRD-PARTY-LICENSES.txt"), licenses)
  const current = new Set([...outputs.map(({ path }) => basename(path)), "THIRD-PARTY-LICENSES.txt"])
  for (const stale of readdirSync(dist).filter((name) => !current.has(name))) {
    rmSync(join(dist, stale), { recursive: true })
  }
}

const kilobytes = (outputs) =>
  `${Math.round(outputs.reduce((sum, { contents }) => sum + contents.length, 0) / 1024)} kB`

const bundle = async (target, { dir, manifest }) => {
  const dist = join(dir, "dist")
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [join(dir, "src", target.entry)],
    outdir: dist,
    outExtension: { ".js": target.extension },
    chunkNames: "chunk-[hash]",
    bundle: true,
    splitting: target.splitting,
    minify: true,
    legalComments: "none",
    platform: "node",
    mainFields: ["module", "main"],
    format: "esm",
    target: "node20",
    external: hostPackages,
    banner: { js: requireBanner },
    metafile: true,
    write: false,
    logLevel: "warning"
  })
  refuseLooseImports(manifest, metafile)
  replaceOutputs(target, dist, outputFiles, thirdPartyLicenses(metafile, root))
  console.log(`${manifest.name}: ${outputFiles.length} file(s), ${kilobytes(outputFiles)}`)
}

/** Bundles every host-started package whose entry exists; resolves to the exit code. */
export const bundleAll = async () => {
  for (const target of targets) {
    const owner = packages.find(({ name }) => name === target.name)
    if (owner === undefined || !existsSync(join(owner.dir, "src", target.entry))) continue
    try {
      await bundle(target, owner)
    } catch (error) {
      console.error(error instanceof Error ? error.message : error)
      return 1
    }
  }
  return 0
}
