import { assert, describe, it } from "@effect/vitest"
import { HostRules, McpServers } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Discovery from "../../src/discovery/Discovery.js"
import type { SourceOptions } from "../../src/Options.js"
import type { Host } from "../support.js"
import { folder, host } from "../support.js"

const discovery = (options: Partial<SourceOptions>, given: Host) =>
  Discovery.layer({ harness: "custom", allow: [], deny: [], ...options }).pipe(Layer.provide(host(given)))

const catalogue = Effect.flatMap(McpServers, (servers) => servers.catalogue)
const refresh = Effect.flatMap(McpServers, (servers) => servers.refresh)
const names = Effect.map(catalogue, ({ servers }) => servers.map(({ name }) => name))

const claude = JSON.stringify({ mcpServers: { both: { command: "host" }, host: { command: "host" } } })

describe("Discovery", () => {
  it.effect("adds a file to what the harness has, the file winning by name", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({
        ".claude.json": claude,
        "more.json": `{ "both": { "command": "file" }, "host": { "enabled": false }, "file": { "command": "file" } }`
      })
      const found = yield* catalogue.pipe(
        Effect.provide(discovery({ harness: "claude-code", configFile: "more.json" }, { cwd, home: cwd }))
      )
      assert.deepStrictEqual(
        found.servers.map(({ endpoint, name }) => [name, endpoint._tag === "stdio" && endpoint.command]),
        [["both", "file"], ["file", "file"]]
      )
      assert.deepStrictEqual(found.unusable.map(({ kind, name }) => [name, kind]), [["host", "disabled"]])
    }).pipe(Effect.scoped))

  it.effect("keeps what it found, and looks again when asked to", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({ "s.json": `{ "a": { "command": "x" } }` })
      yield* Effect.gen(function*() {
        assert.deepStrictEqual(yield* names, ["a"])
        writeFileSync(join(cwd, "s.json"), `{ "b": { "command": "x" } }`)
        assert.deepStrictEqual(yield* names, ["a"])
        assert.deepStrictEqual((yield* refresh).servers.map(({ name }) => name), ["b"])
        assert.deepStrictEqual(yield* names, ["b"])
      }).pipe(Effect.provide(discovery({ configFile: "s.json" }, { cwd })))
    }).pipe(Effect.scoped))

  it.effect("looks for nothing when another sentinel started it", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({ ".claude.json": claude })
      const found = yield* catalogue.pipe(
        Effect.provide(discovery({ harness: "claude-code" }, { cwd, home: cwd, env: { MCP_SENTINEL_DEPTH: "1" } }))
      )
      assert.deepStrictEqual(found.servers, [])
      assert.include(found.problems[0], "started by another mcp-sentinel")
    }).pipe(Effect.scoped))

  it.effect("says what is missing when there is nothing to look at", () =>
    Effect.gen(function*() {
      const none = yield* catalogue.pipe(Effect.provide(discovery({ harness: "none" }, {})))
      assert.include(none.problems[0], "--harness")
      const custom = yield* catalogue.pipe(Effect.provide(discovery({ harness: "custom" }, {})))
      assert.include(custom.problems[0], "--mcp-config FILE")
    }))

  const permitted = (options: Partial<SourceOptions>, server: string, tool: string) =>
    Effect.flatMap(HostRules, (rules) => Effect.either(rules.permit({ server, tool }, {}))).pipe(
      Effect.provide(discovery(options, {})),
      Effect.map((result) => result._tag === "Right" ? "yes" : result.left.message)
    )

  it.effect("holds --allow and --deny, and names the pattern", () =>
    Effect.gen(function*() {
      const options = { harness: "none" as const, allow: ["jobs/*", "other/a.b"], deny: ["jobs/kill*", "bad"] }
      assert.strictEqual(yield* permitted(options, "jobs", "status"), "yes")
      assert.include(yield* permitted(options, "jobs", "kill_all"), `--deny "jobs/kill*"`)
      assert.strictEqual(yield* permitted(options, "other", "a.b"), "yes")
      assert.include(yield* permitted(options, "other", "axb"), `--allow "jobs/*"`)
      assert.include(yield* permitted({ deny: ["bad"] }, "bad", "x"), `--deny "bad"`)
      assert.strictEqual(yield* permitted({ deny: ["bad"] }, "badly", "x"), "yes")
    }))

  it.live("delays nothing at the start, and answers within 10 s although the host hangs", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({ codex: `#!/bin/sh\nsleep 60\n` })
      const begun = Date.now()
      yield* Effect.gen(function*() {
        assert.isBelow(Date.now() - begun, 1_000)
        const found = yield* catalogue
        assert.include(found.problems[0], "codex")
        assert.isBelow(Date.now() - begun, 10_500)
      }).pipe(Effect.provide(discovery({ harness: "codex" }, { cwd, env: { PATH: `${cwd}:/usr/bin:/bin` } })))
    }).pipe(Effect.scoped), 20_000)
})
