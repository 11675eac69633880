import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readCodex, sessionFlags } from "../../src/discovery/Codex.js"
import type { Host } from "../support.js"
import { ancestor, folder, host } from "../support.js"

const stdio = (name: string, more: object = {}) => ({
  name,
  enabled: true,
  disabled_reason: null,
  transport: { type: "stdio", command: "node", args: [`${name}.mjs`], env: null, env_vars: [], cwd: null, ...more },
  startup_timeout_sec: null,
  tool_timeout_sec: null,
  auth_status: "unsupported"
})

const http = (name: string, more: object = {}) => ({
  ...stdio(name),
  transport: {
    type: "streamable_http",
    url: "http://127.0.0.1:9/mcp",
    bearer_token_env_var: null,
    http_headers: null,
    env_http_headers: null,
    http_headers_helper: null,
    ...more
  }
})

/** A program in codex's place that prints what codex printed; it notes how it was called. */
const codex = (list: string, more = "") =>
  `#!/bin/sh
echo "$CODEX_HOME|$MCP_SENTINEL_DEPTH|$*" >> "$0.log"
case "$*" in
*"mcp list"*) cat <<'JSON'
${list}
JSON
${more}
;;
*"mcp get filtered"*) echo '{"name":"filtered","enabled_tools":["a"],"disabled_tools":["b"]}' ;;
*"mcp get secretive"*) echo "Error: no" >&2; exit 1 ;;
*) echo '{"enabled_tools":null,"disabled_tools":null}' ;;
esac
`

const discover = (program: string, given: Host = {}, selfName?: string) =>
  Effect.gen(function*() {
    const bin = yield* folder({ codex: program, "codex.log": "" })
    const env = { HOME: "/home/me", ...given.env, PATH: `${bin}:/usr/bin:/bin` }
    const found = yield* readCodex(selfName).pipe(Effect.provide(host({ cwd: bin, ...given, env })))
    return { found, bin, path: env.PATH }
  }).pipe(Effect.scoped)

const inCodex = ancestor(["/opt/codex", "exec", "-c", "mcp_servers.x.enabled=false", "-p", "work", "hi"], {
  CODEX_HOME: "/elsewhere"
})

describe("readCodex", () => {
  it.effect("keeps endpoints, times, tool filters and headers; a child gets what codex would give it", () =>
    Effect.gen(function*() {
      const entries = [
        {
          ...stdio("filtered", { env: { A: "1" }, env_vars: ["TOKEN", { name: "REM", source: "local" }], cwd: "/tmp" }),
          startup_timeout_sec: 12.5,
          tool_timeout_sec: 90
        },
        http("web", {
          bearer_token_env_var: "TOKEN",
          http_headers: { "X-A": "lit" },
          env_http_headers: { "X-B": "REM" }
        }),
        { ...stdio("off"), enabled: false },
        {
          ...stdio("mcp-sentinel", {
            command: "npx",
            args: ["-y", "@gcszhn/mcp-sentinel-cli", "mcp"],
            env: { OWN: "x" },
            env_vars: ["TOKEN"]
          }),
          tool_timeout_sec: 3600
        }
      ]
      const { found, path } = yield* discover(codex(JSON.stringify(entries)), {
        env: { TOKEN: "t0k", REM: "r", OWN: "x", npm_command: "exec", GIVEN: "by codex", MCP_SENTINEL_ID: "me" },
        ancestors: [inCodex]
      })
      const [filtered, web] = found.servers
      assert.deepInclude(filtered, {
        name: "filtered",
        callTimeout: 90_000,
        startupTimeout: 12_500,
        enabledTools: ["a"],
        disabledTools: ["b"]
      })
      assert.deepStrictEqual(filtered?.endpoint, {
        _tag: "stdio",
        command: "node",
        args: ["filtered.mjs"],
        env: {
          HOME: "/home/me",
          PATH: path,
          REM: "r",
          GIVEN: "by codex",
          TOKEN: "t0k",
          A: "1",
          MCP_SENTINEL_DEPTH: "1"
        },
        cwd: "/tmp"
      })
      assert.deepStrictEqual(web?.endpoint, {
        _tag: "http",
        url: "http://127.0.0.1:9/mcp",
        headers: { "X-A": "lit", "X-B": "r", Authorization: "Bearer t0k" },
        transport: "auto"
      })
      assert.deepStrictEqual(found.unusable.map(({ kind, name }) => [name, kind]), [["off", "disabled"], [
        "mcp-sentinel",
        "self"
      ]])
      assert.strictEqual(found.ownCallTimeout, 3_600_000)
      assert.deepStrictEqual(found.problems, [])
    }))

  it.effect("asks with the home, the profile and the overrides of the codex above it, and with the guard", () =>
    Effect.gen(function*() {
      const bin = yield* folder({ codex: codex(JSON.stringify([stdio("a")])), "codex.log": "" })
      const { readFileSync } = yield* Effect.promise(() => import("node:fs"))
      const given = host({ cwd: bin, env: { PATH: `${bin}:/usr/bin:/bin` }, ancestors: [ancestor(["npx"]), inCodex] })
      yield* readCodex(undefined).pipe(Effect.provide(given))
      assert.deepStrictEqual(readFileSync(`${bin}/codex.log`, "utf8").trim().split("\n"), [
        "/elsewhere|1|-p work mcp list --json -c mcp_servers.x.enabled=false",
        "/elsewhere|1|-p work mcp get a --json -c mcp_servers.x.enabled=false"
      ])
    }).pipe(Effect.scoped))

  it("takes profile and override flags in every spelling", () => {
    const flags = sessionFlags({
      argv: ["codex", "--profile=p", "exec", "--config", "a=1", "--enable=x", "-c", "b=2", "-c"]
    })
    assert.deepStrictEqual(flags, { before: ["--profile=p"], after: ["--config", "a=1", "--enable=x", "-c", "b=2"] })
  })

  it.effect("names a variable that codex did not pass on, and the line to add", () =>
    Effect.gen(function*() {
      const entries = [stdio("a", { env_vars: ["GONE"] }), http("b", { bearer_token_env_var: "ALSO" }), stdio("c")]
      const { found } = yield* discover(codex(JSON.stringify(entries)))
      assert.deepStrictEqual(found.servers.map(({ name }) => name), ["c"])
      assert.include(found.unusable[0]?.reason, `env_vars = ["GONE"]`)
      assert.include(found.unusable[1]?.reason, `env_vars = ["ALSO"]`)
    }))

  it.effect("uses no server whose tool filter it cannot read, whose headers come from a program, or that it does not know", () =>
    Effect.gen(function*() {
      const entries = [stdio("secretive"), http("helped", { http_headers_helper: "x" }), {
        name: "new",
        transport: { type: "ws" }
      }, stdio("c")]
      const { found } = yield* discover(codex(JSON.stringify(entries)))
      assert.deepStrictEqual(found.servers.map(({ name }) => name), ["c"])
      const reasons = Object.fromEntries(found.unusable.map(({ name, reason }) => [name, reason]))
      assert.include(reasons.secretive, "mcp get secretive")
      assert.include(reasons.helped, "http_headers_helper")
      assert.include(reasons.new, "update mcp-sentinel")
    }))

  it.effect("gives a child only the usual variables where codex is not above", () =>
    Effect.gen(function*() {
      const { found, path } = yield* discover(codex(JSON.stringify([stdio("a")])), { env: { AWS_SECRET: "s" } })
      const { endpoint } = found.servers[0]!
      assert.deepInclude(endpoint, { env: { HOME: "/home/me", PATH: path, MCP_SENTINEL_DEPTH: "1" } })
    }))

  const failing: ReadonlyArray<readonly [what: string, program: string, words: ReadonlyArray<string>]> = [
    [
      "broken configuration",
      `#!/bin/sh\nprintf 'WARNING: x\\nError: failed to load\\n\\nCaused by:\\n  config.toml:1:15: unclosed\\nStack backtrace:\\n 0: zz\\n' >&2; exit 1\n`,
      ["Error: failed to load", "config.toml:1:15", "exit code 1"]
    ],
    ["another output", codex("codex 0.1"), ["Update Codex"]],
    ["not a program", `#!/no/such/interpreter\n`, ["codex mcp list --json"]]
  ]
  for (const [what, program, words] of failing) {
    it.effect(`tells one clear problem: ${what}`, () =>
      Effect.gen(function*() {
        const { found } = yield* discover(program)
        assert.strictEqual(found.problems.length, 1)
        for (const word of [...words, "--mcp-config"]) assert.include(found.problems[0], word)
        assert.notInclude(found.problems[0], "backtrace")
      }))
  }

  it.effect("says that codex is not installed", () =>
    Effect.gen(function*() {
      const found = yield* readCodex(undefined).pipe(Effect.provide(host({ env: { PATH: "/nowhere" } })))
      assert.include(found.problems[0], "not found on PATH")
      assert.include(found.problems[0], "--mcp-config")
    }))

  it.live("gives up a codex that hangs, and ends what it started", () =>
    Effect.gen(function*() {
      const started = Date.now()
      const { bin, found } = yield* discover(`#!/bin/sh\nsleep 60 & echo $! > "$0.log"\nwait\n`)
      assert.include(found.problems[0], "did not end within 8s")
      assert.isBelow(Date.now() - started, 10_000)
      assert.isNotEmpty(bin)
    }), 20_000)
})
