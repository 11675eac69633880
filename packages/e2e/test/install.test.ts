import { assert, it } from "@effect/vitest"
import { type HostBox, makeHostBox, startIn } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import * as Effect from "effect/Effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type Binary, claude, codex, opencode } from "../src/Binaries.js"
import { unpackCli } from "../src/cli.js"

interface Case {
  readonly harness: "codex" | "opencode" | "claude-code"
  readonly scope: "user" | "project"
  readonly program: readonly [name: string, binary: () => Binary]
  /** below the box's root */
  readonly file: string
  readonly text: string
  /** the harness's own command that shows its servers, and what it says of one that it could start or would start */
  readonly list: ReadonlyArray<string>
  readonly shows: RegExp
}

const cases: ReadonlyArray<Case> = [
  {
    harness: "codex",
    scope: "user",
    program: ["codex", codex],
    file: "codex-home/config.toml",
    text: "# mine\nmodel = \"m\" # why\n\n[mcp_servers.other]\ncommand = 'true'\nenv_vars = [\"JOB_TOKEN\"]",
    list: ["mcp", "list"],
    shows: /mcp-sentinel .*--harness codex .*enabled/
  },
  {
    harness: "opencode",
    scope: "user",
    program: ["opencode", opencode],
    file: "xdg/config/opencode/opencode.jsonc",
    text:
      "{\n\t// mine\n\t\"autoupdate\": false,\n\t\"mcp\": {\n\t\t\"other\": { \"type\": \"local\", \"command\": [\"true\"], \"enabled\": false },\n\t},\n}\n",
    list: ["mcp", "list"],
    shows: /mcp-sentinel.*connected/
  },
  {
    harness: "claude-code",
    scope: "user",
    program: ["claude", claude],
    file: "home/.claude.json",
    // Claude Code gives every user an ID when it first connects, and would write it between install and uninstall
    text: JSON.stringify({ hasCompletedOnboarding: true, userID: "0".repeat(64) }, null, 2),
    list: ["mcp", "list"],
    shows: /mcp-sentinel: .*Connected/
  },
  {
    harness: "claude-code",
    scope: "project",
    program: ["claude", claude],
    file: "project/.mcp.json",
    text: "{ \"mcpServers\": { } }",
    list: ["mcp", "list"],
    shows: /mcp-sentinel: .*Pending approval/
  }
]

/** The harness under its own name, as a person has it on PATH. */
const putOnPath = (box: HostBox, [name, binary]: Case["program"]): string => {
  const { args, command } = binary()
  const bin = join(box.root, "bin")
  mkdirSync(bin)
  const words = [command, ...args].map((word) => `'${word}'`).join(" ")
  writeFileSync(join(bin, name), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 })
  return bin
}

/** opencode would fetch its plugin SDK into its folder. */
const offline = { NPM_CONFIG_OFFLINE: "true", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" }

for (const { file, harness, list, program, scope, shows, text } of cases) {
  it.scopedLive(`${harness} lists what install wrote into its ${scope} file, and uninstall undoes it byte for byte`, () =>
    Effect.gen(function*() {
      const box = yield* makeHostBox("install", {
        ...offline,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1"
      })
      const cli = unpackCli(join(box.root, "cli"))
      const env = { CODEX_HOME: join(box.root, "codex-home"), PATH: `${putOnPath(box, program)}:${box.env.PATH}` }
      const path = join(box.root, file)
      mkdirSync(dirname(path), { recursive: true })
      mkdirSync(env.CODEX_HOME, { recursive: true })
      writeFileSync(path, text)

      const run = Effect.fnUntraced(function*(command: string, args: ReadonlyArray<string>) {
        const running = yield* startIn(box, { command, args, env })
        const { code } = yield* running.ended
        return { code, out: running.stdout(), all: running.stdout() + running.stderr() }
      })
      const sentinel = (...args: ReadonlyArray<string>) => run(cli.command, [...cli.args, ...args, "--scope", scope])
      const listed = Effect.map(run(program[0], list), ({ all }) => all.replaceAll(/\p{Cc}\[[0-9;]*m/gu, ""))

      // a harness may write into its own file when it first runs
      assert.notInclude(yield* listed, "mcp-sentinel")
      const before = readFileSync(path)

      const dry = yield* sentinel("install", harness, "--dry-run")
      assert.strictEqual(dry.code, 0, dry.all)
      assert.include(dry.out, path)
      assert.match(dry.out, /^\+ .*mcp-sentinel/m)
      assert.deepStrictEqual(readFileSync(path), before)

      const unasked = yield* sentinel("install", harness)
      assert.strictEqual(unasked.code, 1)
      assert.include(unasked.all, "--yes")
      assert.deepStrictEqual(readFileSync(path), before)

      const installed = yield* sentinel("install", harness, "--yes")
      assert.strictEqual(installed.code, 0, installed.all)
      assert.match(yield* listed, shows)
      if (harness === "codex") assert.include(readFileSync(path, "utf8"), "env_vars = [\"CODEX_HOME\",\"JOB_TOKEN\"]")

      const uninstalled = yield* sentinel("uninstall", harness, "--yes")
      assert.strictEqual(uninstalled.code, 0, uninstalled.all)
      assert.isTrue(existsSync(path))
      assert.strictEqual(readFileSync(path, "utf8"), before.toString("utf8"))
      assert.deepStrictEqual(readFileSync(path), before)
      assert.notInclude(yield* listed, "mcp-sentinel")
    }))
}
