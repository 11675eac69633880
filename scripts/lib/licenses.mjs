import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { readJson } from "./workspace.mjs"

const licenseFile = /^(licen[cs]e|copying|notice)([.-].*)?$/i

const rule = `\n${"-".repeat(80)}\n\n`

/** `…/node_modules/@scope/name` of a bundled file; its nearest package.json may be a nameless `{"type": …}` further down. */
const packageDir = (path) => {
  const [before, after] = splitAtLast(path, "node_modules/")
  if (after === undefined) return undefined
  const [first, second] = after.split("/")
  return `${before}node_modules/${first.startsWith("@") ? `${first}/${second}` : first}`
}

const splitAtLast = (text, mark) => {
  const at = text.lastIndexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)]
}

const usedFiles = ({ outputs }) =>
  Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => path)
  )

const holderOf = ({ author }) => typeof author === "string" ? author : author?.name

const textOf = (dir, manifest) => {
  const files = readdirSync(dir).filter((name) => licenseFile.test(name)).toSorted()
  if (files.length > 0) return files.map((name) => readFileSync(join(dir, name), "utf8").trim()).join("\n\n")
  const holder = holderOf(manifest)
  return `The package ships no licence text; its manifest says: ${manifest.license}${holder ? `, ${holder}` : ""}.`
}

const sectionOf = (dir) => {
  const manifest = readJson(join(dir, "package.json"))
  if (manifest.license === undefined) throw new Error(`${manifest.name} is bundled but names no licence`)
  const title = `${manifest.name} ${manifest.version} (${manifest.license})`
  return { title, text: `${title}\n\n${textOf(dir, manifest)}\n` }
}

/** The licences of every package that put at least a byte into the bundle, from esbuild's metafile. */
export const thirdPartyLicenses = (metafile, root) => {
  const dirs = new Set(usedFiles(metafile).map(packageDir).filter((dir) => dir !== undefined))
  const sections = [...dirs].map((dir) => join(root, dir)).filter((dir) => existsSync(join(dir, "package.json")))
    .map(sectionOf)
    .toSorted((a, b) => a.title < b.title ? -1 : 1)
  const unique = sections.filter(({ title }, index) => index === 0 || sections[index - 1].title !== title)
  return `This file contains the work of others, under these licences.\n${rule}${
    unique.map(({ text }) => text).join(rule)
  }`
}
