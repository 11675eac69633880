import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { readConfigFile } from "../src/discovery/ConfigFile.js"
import { HostEnvironment } from "../src/HostEnvironment.js"
import { apply, describePlan, planInstall, planUninstall } from "../src/Install.js"
import { jsonAt, tomlOf } from "../src/InstallEdit.js"
import type { Installable, Scope } from "../src/InstallTarget.js"
import { folder, host } from "./support.js"

const codexProgram = `#!/bin/sh
echo '[{"name":"a","enabled":true,"disabled_reason":null,"transport":{"type":"stdio","command":"x","args":[],"env":null,"env_vars":["JOB_TOKEN"],"cwd":null},"startup_timeout_sec":null,"tool_timeout_sec":null,"auth_status":null}]'
`

interface Machine {
  readonly root: string
  readonly file: string
}

const files: Record<Installable, Record<Scope, string>> = {
  codex: { user: "codex/config.toml", project: "" },
  opencode: { user: "xdg/opencode/opencode.json", project: "work/opencode.json" },
  "claude-code": { user: "home/.claude.json", project: "work/.mcp.json" }
}

const on = <A, E>(
  harness: Installable,
  scope: Scope,
  text: string | undefined,
  use: (machine: Machine) => Effect.Effect<A, E, Effect.Effect.Context<ReturnType<typeof planInstall>>>,
  argv = ["node", "/opt/sentinel/bin.mjs"]
) =>
  Effect.gen(function*() {
    const root = yield* folder({ "bin/codex": codexProgram })
    const file = join(root, files[harness][scope])
    for (const path of ["work", "codex", dirname(file)]) {
      mkdirSync(path === dirname(file) ? path : join(root, path), { recursive: true })
    }
    if (text !== undefined) writeFileSync(file, text)
    return yield* use({ root, file }).pipe(Effect.provide(host({
      argv,
      cwd: join(root, "work"),
      home: join(root, "home"),
      env: {
        PATH: `${root}/bin:/usr/bin:/bin`,
        CODEX_HOME: join(root, "codex"),
        XDG_CONFIG_HOME: join(root, "xdg"),
        XDG_STATE_HOME: join(root, "state")
      }
    })))
  }).pipe(Effect.scoped)

const install = (harness: Installable, scope: Scope = "user") => Effect.flatMap(planInstall(harness, scope), apply)
const uninstall = (harness: Installable, scope: Scope = "user") => Effect.flatMap(planUninstall(harness, scope), apply)
const bytes = (file: string) => readFileSync(file)
const text = (file: string) => readFileSync(file, "utf8")

const tomls: Record<string, string | undefined> = {
  "no file": undefined,
  empty: "",
  comments: "# mine\nmodel = \"m\" # why\n\n[mcp_servers.a]\ncommand = 'x'\n",
  "no newline at the end": "model = \"m\"",
  "Windows lines": "model = \"m\"\r\n\r\n[a]\r\nb = 1\r\n",
  "byte order mark and unicode": "\uFEFFname = \"ünï 🎉\"\n\n\n"
}

const jsons: Record<string, string | undefined> = {
  "no file": undefined,
  empty: "",
  "empty object": "{}",
  comments: "// mine\n{\n  // servers\n  \"theme\": \"x\", /* end */\n}\n",
  "no newline at the end, tabs": "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}",
  "Windows lines": "{\r\n    \"a\": 1\r\n}\r\n",
  "one line": "{\"a\":[1,2],\"z\":{}}",
  "byte order mark and unicode": "\uFEFF{ \"ü\": \"🎉\" }\n",
  "servers there":
    "{ \"mcpServers\": { \"a\": { \"command\": \"x\" } }, \"mcp\": { \"a\": { \"enabled\": false }, } }\n",
  "servers empty": "{\n  \"mcp\": {},\n  \"mcpServers\": {\n  }\n}\n"
}

const cases: ReadonlyArray<readonly [Installable, Scope, Record<string, string | undefined>]> = [
  ["codex", "user", tomls],
  ["opencode", "user", jsons],
  ["opencode", "project", jsons],
  ["claude-code", "user", jsons],
  ["claude-code", "project", jsons]
]

describe("install", () => {
  for (const [harness, scope, texts] of cases) {
    for (const [form, before] of Object.entries(texts)) {
      it.effect(`puts the entry into ${harness}'s ${scope} file and takes it out byte for byte: ${form}`, () =>
        on(harness, scope, before, ({ file }) =>
          Effect.gen(function*() {
            const original = before === undefined ? undefined : bytes(file)
            yield* install(harness, scope)
            const installed = text(file)
            const entry = harness === "codex"
              ? Either.getOrThrow(tomlOf(installed))
              : jsonAt(installed, [harness === "opencode" ? "mcp" : "mcpServers", "mcp-sentinel"])
            assert.include(JSON.stringify(entry), "/opt/sentinel/bin.mjs")
            assert.include(JSON.stringify(entry), `"--harness","${harness}"`)
            for (const line of (before ?? "").split(/\r?\n/)) {
              // what was written before is there as it was, but for a comma that joins it to the entry
              if (line.trim().length > 2 && line.includes("//")) assert.include(installed, line)
            }
            yield* uninstall(harness, scope)
            assert.deepStrictEqual(existsSync(file) ? bytes(file) : undefined, original)
          })))
    }
  }

  it.effect("writes what codex needs: its home, the variables of its servers, approval, and time for attach", () =>
    on("codex", "user", "", ({ file }) =>
      Effect.gen(function*() {
        yield* install("codex")
        const toml = tomlOf(text(file))
        const entry = jsonAt(JSON.stringify(toml), ["right", "mcp_servers", "mcp-sentinel"])
        assert.deepInclude(entry, {
          env_vars: ["CODEX_HOME", "JOB_TOKEN"],
          default_tools_approval_mode: "approve",
          tool_timeout_sec: 3600
        })
      })))

  it.effect("writes npx where npx ran it, and the program's own place otherwise", () =>
    on("claude-code", "project", "{}", ({ file }) =>
      Effect.gen(function*() {
        yield* install("claude-code", "project")
        const entry = jsonAt(text(file), ["mcpServers", "mcp-sentinel"])
        assert.deepInclude(entry, { command: "npx" })
        assert.match(JSON.stringify(entry), /"-y","@gcszhn\/mcp-sentinel-cli@\d/)
      }), ["node", "/home/me/.npm/_npx/0123/node_modules/.bin/mcp-sentinel"]))

  it.effect("writes an entry that this program's own reader takes, and skips as itself by its mark", () =>
    on("claude-code", "project", "{}", ({ file }) =>
      Effect.gen(function*() {
        yield* install("claude-code", "project")
        const id = jsonAt(text(file), ["mcpServers", "mcp-sentinel", "env", "MCP_SENTINEL_ID"])
        const found = yield* readConfigFile(file).pipe(
          Effect.updateService(
            HostEnvironment,
            (given) => ({ ...given, env: { ...given.env, MCP_SENTINEL_ID: String(id) } })
          )
        )
        assert.deepStrictEqual(found.unusable.map(({ kind }) => kind), ["self"])
        assert.include(found.unusable[0]?.reason, "itself")
      })))

  it.effect("plans without writing, and shows nothing of the file but its own lines", () =>
    on("opencode", "user", "{ \"k\": \"s3cr3t\" }", ({ file, root }) =>
      Effect.gen(function*() {
        const plan = yield* planInstall("opencode", "user")
        const shown = describePlan(plan)
        assert.include(shown, file)
        assert.match(shown, /^\+ .*"mcp-sentinel"/m)
        assert.notInclude(shown, "s3cr3t")
        assert.strictEqual(text(file), "{ \"k\": \"s3cr3t\" }")
        assert.isFalse(existsSync(join(root, "state")))
      })))

  it.effect("installs once, and says so", () =>
    on("codex", "user", undefined, ({ file }) =>
      Effect.gen(function*() {
        yield* install("codex")
        const once = text(file)
        const again = yield* planInstall("codex", "user")
        assert.isUndefined(again.edit)
        assert.include(describePlan(again), "installed already")
        assert.strictEqual(text(file), once)
        yield* uninstall("codex")
        assert.include(describePlan(yield* planUninstall("codex", "user")), "not installed")
      })))

  it.effect("keeps what others wrote since, around and into the file", () =>
    Effect.gen(function*() {
      yield* on("codex", "user", "a = 1\n", ({ file }) =>
        Effect.gen(function*() {
          yield* install("codex")
          writeFileSync(file, `# above\n${text(file)}[below]\nb = 2\n`)
          yield* uninstall("codex")
          assert.strictEqual(text(file), "# above\na = 1\n[below]\nb = 2\n")
        }))
      yield* on("claude-code", "user", "{}", ({ file, root }) =>
        Effect.gen(function*() {
          yield* install("claude-code")
          // as Claude Code does, which writes the file anew
          writeFileSync(file, JSON.stringify({ more: 1, ...JSON.parse(text(file)), zeal: true }))
          yield* uninstall("claude-code")
          assert.deepStrictEqual(JSON.parse(text(file)), { more: 1, mcpServers: {}, zeal: true })
          assert.deepStrictEqual(JSON.parse(text(join(root, "state/mcp-sentinel/installed.json"))), [])
        }))
    }))

  it.effect("takes the entry out without a record", () =>
    on("codex", "user", "a = 1\n", ({ file, root }) =>
      Effect.gen(function*() {
        yield* install("codex")
        writeFileSync(join(root, "state/mcp-sentinel/installed.json"), "broken")
        yield* uninstall("codex")
        assert.strictEqual(text(file), "a = 1\n")
      })))

  const unwritable: ReadonlyArray<readonly [Installable, string, string]> = [
    ["codex", "[broken", "Correct the file"],
    ["codex", "mcp_servers = { a = { command = \"x\" } }\n", "Correct the file"],
    ["opencode", "{ \"mcp\": ", "not valid JSON"],
    ["claude-code", "{ \"mcpServers\": [] ", "not valid JSON"]
  ]
  for (const [harness, before, words] of unwritable) {
    it.effect(`changes nothing in a file that it cannot change well: ${before.trim()}`, () =>
      on(harness, "user", before, ({ file }) =>
        Effect.gen(function*() {
          const refused = yield* Effect.flip(install(harness))
          assert.include(refused.message, words)
          assert.include(refused.message, file)
          assert.strictEqual(text(file), before)
        })))
  }

  it.effect("keeps mode and link, leaves no draft, and refuses a file that changed after the plan", () =>
    on("opencode", "user", "{}", ({ file, root }) =>
      Effect.gen(function*() {
        const real = join(root, "dotfiles.json")
        writeFileSync(real, "{}")
        chmodSync(real, 0o640)
        writeFileSync(join(dirname(file), "keep"), "")
        yield* Effect.promise(async () => (await import("node:fs/promises")).rm(file))
        symlinkSync(real, file)
        const plan = yield* planInstall("opencode", "user")
        writeFileSync(real, "{ }")
        assert.include((yield* Effect.flip(apply(plan))).message, "Try again")
        yield* install("opencode")
        assert.isTrue(lstatSync(file).isSymbolicLink())
        assert.strictEqual(statSync(real).mode & 0o777, 0o640)
        assert.deepStrictEqual(readdirSync(dirname(file)).toSorted(), ["keep", "opencode.json"])
        yield* uninstall("opencode")
        assert.strictEqual(text(real), "{ }")
      })))

  it.effect("has one place for codex", () =>
    on(
      "codex",
      "user",
      "",
      () =>
        Effect.map(
          Effect.flip(planInstall("codex", "project")),
          ({ message }) => assert.include(message, "--scope user")
        )
    ))
})
