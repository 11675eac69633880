import { readFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { dirname, join, relative, resolve, sep } from "node:path"
import ts from "typescript"
import { report } from "./lib/report.mjs"
import { filesUnder, packages, published, root } from "./lib/workspace.mjs"

/** They make and judge values and nothing else: whatever they import is as pure. */
const pureModules = [
  "Json",
  "JsonPath",
  "Condition",
  "Excerpt",
  "Pattern",
  "Selection",
  "ToolResult",
  "Errors",
  join("internal", "equality"),
  join("internal", "includes"),
  join("internal", "nearest"),
  join("internal", "patternSyntax"),
  join("internal", "markdown")
].map((name) => `${name}.ts`)

/** Modules of Effect that describe services or run something; the pure modules work on values. */
const effectServices = ["Context", "Layer", "Effect", "Runtime", "ManagedRuntime", "Config", "Clock", "Ref", "Fiber"]

const globalsOfTheHost = ["Date", "console", "process", "performance", "setTimeout", "setInterval", "setImmediate"]

const harnesses = ["cli", "opencode", "deepseek-harness"]

const harnessNames = packages.filter(({ name }) => harnesses.includes(name)).map(({ manifest }) => manifest.name)

const inside = (file, ...folder) => file.startsWith(join(root, ...folder) + sep)

const nameOf = (specifier) => specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/")

const lineOf = (source, node) => source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1

const walk = (node, visit) => {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

const specifierOf = (node) => {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return node.arguments[0]
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return node.argument.literal
  return undefined
}

const importsOf = (source) => {
  const imports = []
  walk(source, (node) => {
    const specifier = specifierOf(node)
    if (specifier !== undefined && ts.isStringLiteral(specifier)) {
      imports.push({ specifier: specifier.text, line: lineOf(source, node) })
    }
  })
  return imports
}

const isPropertyName = (node) => {
  const { parent } = node
  return (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
    (ts.isQualifiedName(parent) && parent.right === node) || ts.isPropertyAssignment(parent) && parent.name === node ||
    ts.isPropertySignature(parent) || ts.isImportSpecifier(parent) || ts.isNamespaceImport(parent)
}

const globalsUsedIn = (source) => {
  const used = []
  walk(source, (node) => {
    if (ts.isIdentifier(node) && globalsOfTheHost.includes(node.text) && !isPropertyName(node)) {
      used.push({ name: node.text, line: lineOf(source, node), text: node.parent.getText(source) })
    }
  })
  return used
}

const targetOf = (file, specifier) => resolve(dirname(file), specifier.replace(/\.js$/, ".ts"))

const dependenciesOf = ({ manifest, name }) => {
  const shipped = { ...manifest.dependencies, ...manifest.peerDependencies }
  return Object.keys(harnesses.includes(name) ? { ...shipped, ...manifest.devDependencies } : shipped)
}

const shippedRules = (owner, file, { specifier }) => {
  if (specifier.startsWith(".")) {
    return inside(targetOf(file, specifier), "packages", owner.name, "src") ? [] : ["leaves its package"]
  }
  if (isBuiltin(specifier)) return []
  if (nameOf(specifier) === "effect" && specifier === "effect") return ["import the module itself: effect/Effect, …"]
  return dependenciesOf(owner).includes(nameOf(specifier)) ? [] : ["is not in the package's own dependencies"]
}

const coreRules = (file, { specifier }) => {
  const inMcp = inside(file, "packages", "core", "src", "mcp")
  return isBuiltin(specifier) && !inMcp ? ["Node's modules belong into core/src/mcp only"] : []
}

const harnessRules = (owner, { specifier }) =>
  harnesses.includes(owner.name) && harnessNames.includes(nameOf(specifier)) &&
    nameOf(specifier) !== owner.manifest.name
    ? ["harness packages never import each other"]
    : []

const pureRules = (file, { specifier }) => {
  const path = relative(join(root, "packages", "core", "src"), file)
  if (!pureModules.includes(path)) return []
  if (specifier.startsWith(".")) {
    const target = relative(join(root, "packages", "core", "src"), targetOf(file, specifier))
    return pureModules.includes(target) ? [] : ["a pure module imports pure modules only"]
  }
  const service = effectServices.some((name) => specifier === `effect/${name}`)
  return service ? ["a pure module needs no service"] : []
}

const everywhereRules = (file, { specifier }) => {
  const toScratchpad = specifier.startsWith(".")
    ? inside(targetOf(file, specifier), "scratchpad")
    : specifier === "scratchpad"
  return toScratchpad ? ["nothing imports the scratchpad"] : []
}

/** The transports are the SDK's promises and Node's streams below Effect: their grace times run on Node's timers. */
const globalRules = (file, { name, text }) => {
  const inMcp = inside(file, "packages", "core", "src", "mcp")
  const ofProcess = inMcp && name === "process" && !text.startsWith("process.env")
  const ofTransport = inMcp && file.endsWith("Transport.ts") && ["setTimeout", "setImmediate"].includes(name)
  return ofProcess || ofTransport
    ? []
    : [`core gets ${name} from a service (Clock, Config, Logger), never from the host`]
}

const parse = (file) => ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true)

const problemsOf = (owner, file, shipped) => {
  const source = parse(file)
  const at = (line) => `${relative(root, file)}:${line}`
  const imports = importsOf(source).flatMap((found) =>
    [
      ...everywhereRules(file, found),
      ...harnessRules(owner, found),
      ...(shipped ? shippedRules(owner, file, found) : []),
      ...(shipped && owner.name === "core" ? [...coreRules(file, found), ...pureRules(file, found)] : [])
    ].map((problem) => `${at(found.line)} imports "${found.specifier}": ${problem}`)
  )
  const globals = shipped && owner.name === "core"
    ? globalsUsedIn(source).flatMap((found) =>
      globalRules(file, found).map((problem) => `${at(found.line)} ${problem}`)
    )
    : []
  return [...imports, ...globals]
}

report(
  packages.flatMap((owner) =>
    ["src", "test"].flatMap((folder) =>
      filesUnder(join(owner.dir, folder), ".ts").flatMap((file) =>
        problemsOf(owner, file, folder === "src" && published.includes(owner))
      )
    )
  )
)
