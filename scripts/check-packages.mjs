import { report } from "./lib/report.mjs"
import { published } from "./lib/workspace.mjs"

/** One file that needs nothing: installing a harness package or the CLI must not fetch anything else. */
const bundledNames = ["cli", "opencode", "deepseek-harness"]

const runtimeDependencies = ({ manifest }) =>
  Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.bundleDependencies }).map((
    name
  ) => `${manifest.name} would install ${name}; it is bundled, so move it to devDependencies`)

const mandatoryPeers = ({ manifest }) =>
  Object.keys(manifest.peerDependencies ?? {})
    .filter((name) => manifest.peerDependenciesMeta?.[name]?.optional !== true)
    .map((name) => `${manifest.name} has the peer ${name} that is not optional; the host brings it`)

const shipped = ({ manifest, name }) => [
  ...(manifest.license === "MIT" ? [] : [`${manifest.name} names no MIT licence`]),
  ...(Array.isArray(manifest.files)
    ? []
    : [`${manifest.name} has no "files": the tarball would hold the whole folder`]),
  ...(manifest.publishConfig?.access === "public" && manifest.publishConfig.provenance === true
    ? []
    : [`${manifest.name} lacks publishConfig access and provenance`]),
  ...(manifest.repository?.directory === `packages/${name}` ? [] : [`${manifest.name} names no repository folder`]),
  ...(manifest.scripts === undefined ? [] : [`${manifest.name} has scripts; commands live at the root`])
]

const bundled = published.filter(({ name }) => bundledNames.includes(name))

const missing = bundledNames.length === bundled.length ? [] : ["a bundled package is missing or private"]

report([
  ...missing,
  ...bundled.flatMap(runtimeDependencies),
  ...bundled.flatMap(mandatoryPeers),
  ...published.flatMap(shipped)
])
