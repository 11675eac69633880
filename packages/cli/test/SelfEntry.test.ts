import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { readAncestors } from "../src/Ancestry.js"
import type { Candidate } from "../src/SelfEntry.js"
import { findSelf, selfFacts } from "../src/SelfEntry.js"
import { folder, host } from "./support.js"

/** Stands for the built program: tells what it was given, and lives until its stdin ends. */
const program = `#!/usr/bin/env node
process.stdout.write(JSON.stringify({ argv: process.argv, env: process.env, parent: process.ppid }) + "\\n")
process.stdin.resume()
`

/** Stands for the harness: runs the command that it is given as one of its servers. */
const harness = `
import { spawn } from "node:child_process"
const { command, args, env, cwd } = JSON.parse(process.argv[2])
spawn(command, args, { env, cwd, stdio: "inherit" })
`

const Told = Schema.parseJson(Schema.Struct({
  argv: Schema.Array(Schema.String),
  env: Schema.Record({ key: Schema.String, value: Schema.String }),
  parent: Schema.Number
}))

/** A machine with the program installed in all usual ways. */
const machine = Effect.map(
  folder({
    "lib/node_modules/@gcszhn/mcp-sentinel-cli/package.json":
      `{"name":"@gcszhn/mcp-sentinel-cli","version":"1.0.0","bin":{"mcp-sentinel":"dist/bin.mjs"}}`,
    "lib/node_modules/@gcszhn/mcp-sentinel-cli/dist/bin.mjs": program,
    "lib/package.json": `{"name":"p","dependencies":{"@gcszhn/mcp-sentinel-cli":"1.0.0"}}`,
    "clone/out.mjs": program,
    "harness.mjs": harness,
    "exec.sh": `#!/bin/sh\nexec node "$(dirname "$0")/clone/out.mjs" "$@"\n`,
    "wrap.sh": `#!/bin/sh\nnode "$(dirname "$0")/clone/out.mjs" "$@"\nexit $?\n`
  }),
  (root) => {
    const bin = join(root, "lib/node_modules/@gcszhn/mcp-sentinel-cli/dist/bin.mjs")
    for (const link of ["lib/node_modules/.bin/mcp-sentinel", "bin/mcp-sentinel"]) {
      mkdirSync(dirname(join(root, link)), { recursive: true })
      symlinkSync(bin, join(root, link))
    }
    // processes are known as a harness by their name
    symlinkSync(process.execPath, join(root, "codex"))
    for (const file of [bin, join(root, "exec.sh"), join(root, "wrap.sh")]) chmodSync(file, 0o755)
    writeFileSync(join(root, "lib/package-lock.json"), "{}")
    return root
  }
)

/** Starts an entry from the harness, and gathers what the sentinel in it would know. */
const factsOf = (root: string, entry: Candidate, cwd: string, others: ReadonlyArray<Candidate>, selfName?: string) =>
  Effect.gen(function*() {
    const env = {
      PATH: [join(root, "bin"), dirname(process.execPath), "/usr/bin", "/bin"].join(":"),
      HOME: root,
      npm_config_cache: join(root, "cache"),
      npm_config_offline: "true",
      npm_config_update_notifier: "false",
      ...entry.env
    }
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(join(root, "codex"), [join(root, "harness.mjs"), JSON.stringify({ ...entry, env, cwd })], {
          stdio: ["pipe", "pipe", "inherit"],
          detached: true
        })
      ),
      ({ pid }) => Effect.sync(() => process.kill(-(pid ?? 0), "SIGKILL"))
    )
    const line = yield* Effect.async<string>((resume) => {
      let text = ""
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString()
        if (text.includes("\n")) resume(Effect.succeed(text.slice(0, text.indexOf("\n"))))
      })
    }).pipe(Effect.timeout("20 seconds"))
    const told = yield* Schema.decode(Told)(line)
    const ancestors = yield* readAncestors(told.parent, process.platform)
    return yield* selfFacts([entry, ...others], { selfName, envIdentifies: true }).pipe(
      Effect.provide(host({ argv: told.argv, env: told.env, ancestors }))
    )
  })

const tail = ["mcp", "--harness", "codex"]
const peer: Candidate = {
  name: "peer",
  command: "npx",
  args: ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/mcp-sentinel"],
  env: {}
}
const twin: Candidate = { name: "twin", command: "mcp-sentinel", args: ["mcp", "--harness", "custom"], env: {} }

const forms = (root: string): Readonly<Record<string, Candidate>> => {
  const entry = (command: string, ...args: ReadonlyArray<string>): Candidate => ({
    name: "own",
    command,
    args,
    env: {}
  })
  return {
    "node and a path": entry("node", join(root, "clone/out.mjs"), ...tail),
    "a global program": entry("mcp-sentinel", ...tail),
    "a program by path": entry(join(root, "bin/mcp-sentinel"), ...tail),
    "npx and the package": entry("npx", "-y", "@gcszhn/mcp-sentinel-cli@1", ...tail),
    "npx --package": entry("npx", "--package=@gcszhn/mcp-sentinel-cli", "mcp-sentinel", ...tail),
    "a wrapper that stays": entry(join(root, "wrap.sh"), ...tail),
    "a shell line": entry("sh", "-c", `cd ${root} && node clone/out.mjs ${tail.join(" ")}; exit 0`),
    "a wrapper that execs, by its variables": { ...entry(join(root, "exec.sh"), ...tail), env: { OWN_MARK: "x1" } },
    "a wrapper that execs, by the mark of install": {
      ...entry(join(root, "exec.sh"), ...tail),
      env: { MCP_SENTINEL_ID: "id1" }
    },
    "a wrapper that execs, by --self-name": entry(join(root, "exec.sh"), ...tail, "--self-name", "own")
  }
}

describe("findSelf", () => {
  const names = Object.keys(forms(""))
  for (const name of names) {
    it.live(`knows itself when launched by ${name}`, () =>
      Effect.gen(function*() {
        const root = yield* machine
        const entry = forms(root)[name]!
        const others = [peer, { ...peer, name: "env", env: { OWN_MARK: "other", LANG: "C" } }, twin]
        const facts = yield* factsOf(
          root,
          entry,
          join(root, "lib"),
          others,
          name.includes("self-name") ? "own" : undefined
        )
        const found = findSelf([peer, entry, ...others], facts)
        assert.deepStrictEqual([...found.keys()].toSorted(), ["own", "twin"])
        assert.include(found.get("own"), "sentinel")
      }).pipe(Effect.scoped), 40_000)
  }

  it.effect("skips every sentinel when two are configured alike, and nothing else", () =>
    Effect.gen(function*() {
      const own: Candidate = { name: "own", command: "npx", args: ["-y", "@gcszhn/mcp-sentinel-cli", "mcp"], env: {} }
      const shell: Candidate = {
        name: "shell",
        command: "bash",
        args: ["-lc", "npx -y @gcszhn/mcp-sentinel-cli@latest mcp --harness codex"],
        env: {}
      }
      const lookalikes: ReadonlyArray<Candidate> = [
        peer,
        { name: "docs", command: "docs", args: ["--about", "mcp-sentinel", "--fast"], env: {} },
        { name: "fork", command: "npx", args: ["@gcszhn/mcp-sentinel-cli-tools", "mcp"], env: {} },
        { name: "same env", command: "x", args: [], env: { LANG: "C" } }
      ]
      const candidates = [own, { ...own, name: "copy" }, shell, ...lookalikes]
      const facts = yield* selfFacts(candidates, { envIdentifies: false }).pipe(
        Effect.provide(host({ env: { LANG: "C" } }))
      )
      assert.deepStrictEqual([...findSelf(candidates, facts).keys()].toSorted(), ["copy", "own", "shell"])
    }))
})
