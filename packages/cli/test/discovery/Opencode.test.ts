import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Found } from "../../src/discovery/Found.js"
import { readOpencode } from "../../src/discovery/Opencode.js"
import { folder, host } from "../support.js"

interface Given {
  /** what `opencode debug config` prints */
  readonly printed: unknown
  readonly files?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  readonly program?: string
}

/** In `root`: `bin/opencode`, the global configuration under `xdg`, the session in `repo/sub`. */
const discover = ({ env = {}, files = {}, printed, program }: Given) =>
  Effect.gen(function*() {
    const root = yield* folder({
      "bin/opencode": program ?? `#!/bin/sh\ncat <<'JSON'\n${JSON.stringify(printed)}\nJSON\n`,
      ...files
    })
    mkdirSync(join(root, "repo/.git"), { recursive: true })
    mkdirSync(join(root, "repo/sub"), { recursive: true })
    const given = host({
      cwd: join(root, "repo/sub"),
      home: join(root, "home"),
      env: { PATH: `${root}/bin:/usr/bin:/bin`, XDG_CONFIG_HOME: join(root, "xdg"), ...env }
    })
    return { root, found: yield* readOpencode(undefined).pipe(Effect.provide(given)) }
  }).pipe(Effect.scoped)

const server = (found: Found, name: string) => {
  const one = found.servers.find((candidate) => candidate.name === name)
  assert.isDefined(one, JSON.stringify(found.unusable))
  return one
}

const hidden = "***"

describe("readOpencode", () => {
  it.effect("takes entries as opencode merged them, and gives a child the whole environment", () =>
    Effect.gen(function*() {
      const { found, root } = yield* discover({
        env: { ANY: "thing", OWN: "x", MCP_SENTINEL_ID: "me" },
        printed: {
          experimental: { mcp_timeout: 7_000 },
          mcp: {
            jobs: { type: "local", command: ["node", "x y"], environment: { F: "1" }, cwd: "rel", timeout: 4_000 },
            rem: { type: "remote", url: "http://h/mcp", headers: { X: "lit" }, oauth: { clientId: "c" } },
            off: { enabled: false },
            bad: { type: "local", command: "node", environment: { N: 5 } },
            sentinel: { type: "local", command: ["mcp-sentinel", "mcp"], environment: { OWN: "x" } }
          }
        }
      })
      const jobs = server(found, "jobs")
      assert.strictEqual(jobs.callTimeout, 4_000)
      assert.deepInclude(jobs.endpoint, { command: "node", args: ["x y"], cwd: join(root, "repo/sub/rel") })
      const env = jobs.endpoint._tag === "stdio" ? jobs.endpoint.env : {}
      assert.deepInclude(env, { ANY: "thing", F: "1", MCP_SENTINEL_DEPTH: "1" })
      assert.doesNotHaveAnyKeys(env, ["OWN", "MCP_SENTINEL_ID"])
      const remote = server(found, "rem")
      assert.strictEqual(remote.callTimeout, 7_000)
      assert.include(remote.source, "OAuth")
      assert.deepStrictEqual(found.unusable.map(({ kind, name }) => [name, kind]), [["off", "disabled"], [
        "bad",
        "broken"
      ], ["sentinel", "self"]])
      assert.include(found.unusable[1]?.reason, "mcp.bad.environment.N")
    }))

  it.effect("reads hidden values from the files, the strongest layer first, and replaces references as opencode does", () =>
    Effect.gen(function*() {
      const { found } = yield* discover({
        env: {
          TOK: "t0k",
          OPENCODE_CONFIG_CONTENT: `{ "mcp": { "inline": { "headers": { "Authorization": "in" } } } }`
        },
        printed: {
          mcp: {
            web: { type: "remote", url: hidden, headers: { Authorization: hidden, Accept: hidden } },
            local: { type: "local", command: ["x"], environment: { API_KEY: hidden } },
            inline: { type: "remote", url: "http://h/", headers: { Authorization: hidden } },
            lost: { type: "remote", url: "http://h/", headers: { Authorization: hidden } }
          }
        },
        files: {
          "xdg/opencode/opencode.jsonc": `{ // global
            "mcp": { "web": { "url": "http://u:p@h/", "headers": { "Authorization": "Bearer {env:TOK}", "Accept": "weak" } } } }`,
          "repo/opencode.json": `{ "mcp": { "web": { "headers": { "Accept": "strong", } } } }`,
          "repo/.opencode/opencode.json":
            `{ "mcp": { "local": { "environment": { "API_KEY": "{file:./key.txt}" } } } }`,
          "repo/.opencode/key.txt": "k3y\n"
        }
      })
      assert.deepInclude(server(found, "web").endpoint, {
        url: "http://u:p@h/",
        headers: { Authorization: "Bearer t0k", Accept: "strong" }
      })
      assert.deepInclude(server(found, "inline").endpoint, { headers: { Authorization: "in" } })
      const local = server(found, "local").endpoint
      assert.strictEqual(local._tag === "stdio" ? local.env.API_KEY : "", "k3y")
      assert.include(found.unusable[0]?.reason, "headers.Authorization")
      assert.notInclude(JSON.stringify(found.unusable), "t0k")
    }))

  it.effect("respects what is denied or switched off for the agent, the last rule deciding", () =>
    Effect.gen(function*() {
      const { found } = yield* discover({
        printed: {
          permission: { "*": "allow", "jobs_*": "deny", jobs_status: "allow", arg_x: { "*": "deny" }, ask_x: "ask" },
          tools: { "off_*": false },
          agent: { build: { permission: { web_x: "deny" } }, plan: { permission: { "*": "deny" } } },
          mcp: {}
        }
      })
      const denied = (server: string, tool: string) => found.denies({ server, tool })
      assert.include(denied("jobs", "kill"), `permission["jobs_*"]: "deny"`)
      assert.isUndefined(denied("jobs", "status"))
      assert.include(denied("arg", "x"), "arg_x")
      assert.include(denied("off", "y"), `tools["off_*"]: false`)
      assert.include(denied("web", "x"), "agent.build.permission")
      assert.isUndefined(denied("ask", "x"))
      assert.isUndefined(denied("other", "x"))
    }))

  it.effect("asks again without --pure when opencode does not know it, and finds the JSON behind other output", () =>
    Effect.gen(function*() {
      const program = `#!/bin/sh\ncase "$*" in *--pure*) echo "Unknown argument: pure" >&2; exit 1;; esac\n` +
        `echo "NOISY plugin"; echo '{"mcp":{"a":{"type":"local","command":["x"]}}}'\n`
      const { found } = yield* discover({ printed: {}, program })
      assert.deepInclude(server(found, "a").endpoint, { command: "x" })
    }))

  it.effect("tells a broken configuration in opencode's words, without colours", () =>
    Effect.gen(function*() {
      const program =
        `#!/bin/sh\nprintf '\\033[91mError: \\033[0mConfiguration is invalid at /p/opencode.json\\n  Expected array mcp.x.command\\n' >&2; exit 1\n`
      const { found } = yield* discover({ printed: {}, program })
      assert.strictEqual(found.problems.length, 1)
      assert.include(
        found.problems[0],
        "Error: Configuration is invalid at /p/opencode.json Expected array mcp.x.command"
      )
      assert.include(found.problems[0], "--mcp-config")
    }))
})
