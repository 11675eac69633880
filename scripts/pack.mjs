import { packAll } from "./lib/pack.mjs"

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error("usage: node scripts/pack.mjs <folder for the tarballs>")
  process.exit(2)
}
for (const { contents, file } of await packAll(folder)) console.log(`${file}  (${contents.length} files)`)
