import { existsSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { report } from "./lib/report.mjs"
import { packages, published, readJson, root, rootManifest } from "./lib/workspace.mjs"

const scratchpad = {
  name: "scratchpad",
  dir: join(root, "scratchpad"),
  manifest: readJson(join(root, "scratchpad/package.json"))
}

const everything = [{ name: "root", dir: root, manifest: rootManifest }, scratchpad, ...packages]

const text = (path) => existsSync(path) ? readFileSync(path, "utf8") : ""

const inWorkspace = everything.filter(({ name }) => name !== "e2e")

const oneVersion = everything
  .filter(({ manifest }) => manifest.version !== rootManifest.version)
  .map(({ manifest }) => `${manifest.name} has version ${manifest.version}, the workspace ${rootManifest.version}`)

const onePnpm = packages
  .filter(({ manifest }) => (manifest.packageManager ?? rootManifest.packageManager) !== rootManifest.packageManager)
  .map(({ manifest }) =>
    `${manifest.name} names ${manifest.packageManager}, the workspace ${rootManifest.packageManager}`
  )

const wanted = ({ manifest }) =>
  Object.entries({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies })

const catalogUsed = inWorkspace.flatMap((owner) =>
  wanted(owner)
    .filter(([, range]) => !/^(catalog|workspace):/.test(range))
    .map(([name, range]) =>
      `${owner.manifest.name} asks for ${name} ${range}; write "catalog:" and add it to the catalog`
    )
)

/** `name: version` lines below `catalog:`; a full YAML parser would be one more dependency for this one list. */
const catalog = new Map(
  [...(text(join(root, "pnpm-workspace.yaml")).split(/^catalog:\n/m)[1] ?? "").matchAll(/^ {2}"?([^":\s]+)"?: (.+)$/gm)]
    .map(([, name, version]) => [name, version])
)

const exactCatalog = [...catalog]
  .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
  .map(([name, version]) => `the catalog has ${name} at ${version}; give one exact version`)

const asked = new Set(inWorkspace.flatMap((owner) => wanted(owner).map(([name]) => name)))

const unusedCatalog = [...catalog.keys()].filter((name) => !asked.has(name)).map((name) =>
  `the catalog has ${name}, which no package asks for`
)

const lockFiles = [root, join(root, "packages/e2e")].map((dir) => join(dir, "pnpm-lock.yaml"))

const hostlessLocks = lockFiles.flatMap((path) => {
  const content = text(path)
  const file = relative(root, path)
  if (content === "") return [`${file} is missing`]
  return /https?:\/\/|tarball:/.test(content)
    ? [`${file} names a registry host; install with the .npmrc beside it`]
    : []
})

const readme = text(join(root, "README.md"))

const namedInReadme = published
  .filter(({ manifest }) => !readme.includes(manifest.name))
  .map(({ manifest }) => `README.md does not mention ${manifest.name}`)

const license = text(join(root, "LICENSE"))

const documents = published.flatMap(({ dir }) => [
  ...(license !== "" && text(join(dir, "LICENSE")) === license
    ? []
    : [`${relative(root, dir)}/LICENSE differs from LICENSE`]),
  ...(text(join(dir, "README.md")) === "" ? [`${relative(root, dir)}/README.md is missing`] : [])
])

report([
  ...oneVersion,
  ...onePnpm,
  ...catalogUsed,
  ...exactCatalog,
  ...unusedCatalog,
  ...hostlessLocks,
  ...namedInReadme,
  ...documents
])
