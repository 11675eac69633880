import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { readClaudeCode } from "../../src/discovery/ClaudeCode.js"
import type { Found } from "../../src/discovery/Found.js"
import type { Host } from "../support.js"
import { ancestor, folder, host } from "../support.js"

const servers = (...entries: ReadonlyArray<readonly [name: string, mark: string]>) =>
  Object.fromEntries(entries.map(([name, mark]) => [name, { command: mark }]))

/** In `root`: `home`, and the session in `work/project`. */
const discover = (files: () => Readonly<Record<string, unknown>>, given: Host = {}) =>
  Effect.gen(function*() {
    const root = yield* folder(
      Object.fromEntries(
        Object.entries(files()).map(([name, value]) => [
          name,
          typeof value === "string" ? value : JSON.stringify(value, null, 1)
        ])
      )
    )
    const cwd = join(root, "work/project")
    const env = { PATH: "/bin", ...given.env }
    const found = yield* readClaudeCode(undefined).pipe(
      Effect.provide(host({ home: join(root, "home"), cwd, ...given, env }))
    )
    return { found, root }
  }).pipe(Effect.scoped)

const commands = (found: Found) =>
  Object.fromEntries(
    found.servers.map(({ endpoint, name }) => [name, endpoint._tag === "stdio" ? endpoint.command : endpoint.url])
  )
const reasons = (found: Found) => Object.fromEntries(found.unusable.map(({ name, reason }) => [name, reason]))

const headless = { CLAUDE_CODE_ENTRYPOINT: "sdk-cli" }
const interactive = { CLAUDE_CODE_ENTRYPOINT: "cli" }

describe("readClaudeCode", () => {
  it.effect("merges user, project and local scope, the nearest .mcp.json winning", () =>
    Effect.gen(function*() {
      const root = yield* folder({
        "work/.mcp.json": JSON.stringify({ mcpServers: servers(["up", "up"], ["near", "far"], ["u", "project"]) }),
        "work/project/.mcp.json": JSON.stringify({ mcpServers: servers(["near", "near"], ["l", "project"]) })
      })
      const project = join(root, "work/project")
      const config = yield* folder({
        ".claude.json": JSON.stringify({
          mcpServers: servers(["u", "user"], ["only", "user"]),
          projects: {
            [project]: { mcpServers: servers(["l", "local"]), disabledMcpServers: ["only"] },
            "/other": { mcpServers: servers(["x", "x"]) }
          }
        })
      })
      const found = yield* readClaudeCode(undefined).pipe(
        Effect.provide(host({ cwd: project, env: { ...headless, CLAUDE_CONFIG_DIR: config } }))
      )
      assert.deepStrictEqual(commands(found), { u: "project", up: "up", near: "near", l: "local" })
      assert.include(reasons(found).only, "/mcp")
      assert.include(found.servers.find(({ name }) => name === "l")?.source, ".claude.json:1 (local scope)")
    }).pipe(Effect.scoped))

  it.effect("expands variables as Claude Code does, and gives a child the whole environment", () =>
    Effect.gen(function*() {
      const { found } = yield* discover(() => ({
        "home/.claude.json": {
          mcpServers: {
            a: {
              type: "stdio",
              command: "${CMD}",
              args: ["${UNSET}", "${UNSET:-d}", "$HOME"],
              env: { T: "${CMD}" },
              timeout: 9
            },
            h: { type: "http", url: "http://h/${UNSET:-x}", headers: { A: "Bearer ${CMD}" } },
            w: { type: "ws", url: "ws://h" },
            p: { type: "http", url: "http://h", headersHelper: "x" }
          }
        }
      }), { env: { CMD: "run", ANY: "thing", MCP_TOOL_TIMEOUT: "3000" } })
      const [a, h] = found.servers
      assert.deepInclude(a, { callTimeout: 9 })
      assert.deepStrictEqual(a?.endpoint, {
        _tag: "stdio",
        command: "run",
        args: ["${UNSET}", "d", "$HOME"],
        env: { PATH: "/bin", CMD: "run", ANY: "thing", MCP_TOOL_TIMEOUT: "3000", T: "run", MCP_SENTINEL_DEPTH: "1" },
        cwd: undefined
      })
      assert.deepInclude(h, {
        callTimeout: 3_000,
        endpoint: { _tag: "http", url: "http://h/x", headers: { A: "Bearer run" }, transport: "http" }
      })
      assert.include(reasons(found).w, `home/.claude.json:`)
      assert.include(reasons(found).p, "headersHelper")
    }))

  const approvals: ReadonlyArray<
    readonly [state: string, files: Record<string, unknown>, env: Record<string, string>, used: boolean]
  > = [
    ["nothing, a person is there", {}, interactive, false],
    ["nothing, at a terminal", {}, {}, false],
    ["nothing, claude -p", {}, headless, true],
    [
      "approved locally",
      { "work/project/.claude/settings.local.json": { enabledMcpjsonServers: ["a"] } },
      interactive,
      true
    ],
    [
      "all approved by the user",
      { "home/.claude/settings.json": { enableAllProjectMcpServers: true } },
      interactive,
      true
    ],
    [
      "approved by the project itself, not trusted",
      { "work/project/.claude/settings.json": { enableAllProjectMcpServers: true } },
      interactive,
      false
    ],
    [
      "disabled wins",
      { "work/project/.claude/settings.local.json": { enabledMcpjsonServers: ["a"], disabledMcpjsonServers: ["a"] } },
      headless,
      false
    ]
  ]
  for (const [state, files, env, used] of approvals) {
    it.effect(`${used ? "uses" : "does not use"} a server of .mcp.json: ${state}`, () =>
      Effect.gen(function*() {
        const { found } = yield* discover(
          () => ({ "work/project/.mcp.json": { mcpServers: servers(["a", "x"]) }, ...files }),
          { env }
        )
        assert.deepStrictEqual(found.servers.map(({ name }) => name), used ? ["a"] : [])
        assert.deepStrictEqual(found.unusable.map(({ kind }) => kind), used ? [] : ["disabled"])
      }))
  }

  it.effect("takes what the running claude was started with, and nothing else when that is strict", () =>
    Effect.gen(function*() {
      const files = () => ({
        "home/.claude.json": { mcpServers: servers(["u", "user"]) },
        "work/project/more.json": { mcpServers: servers(["m", "more"]) }
      })
      const line = [
        "claude",
        "-p",
        "hi",
        "--mcp-config",
        "more.json",
        JSON.stringify({ mcpServers: servers(["j", "json"]) }),
        "--disallowedTools",
        "mcp__m__x,Bash"
      ]
      const given = (argv: ReadonlyArray<string>) => ({ ancestors: [ancestor(["npx", "x"]), ancestor(argv)] })
      const { found } = yield* discover(files, given(line))
      assert.deepStrictEqual(commands(found), { u: "user", m: "more", j: "json" })
      assert.include(found.denies({ server: "m", tool: "x" }), "--disallowedTools")
      const strict = yield* discover(files, given([...line, "--strict-mcp-config"]))
      assert.deepStrictEqual(commands(strict.found), { m: "more", j: "json" })
    }))

  it.effect("respects deny rules of every settings file", () =>
    Effect.gen(function*() {
      const { found } = yield* discover(() => ({
        "home/.claude/settings.json": { permissions: { deny: ["mcp__whole", "mcp__some__get_*", "Bash"] } },
        "work/project/.claude/settings.json": { permissions: { deny: ["mcp__my_jobs__kill"] } },
        "work/project/.claude/settings.local.json": `{ // mine
          "permissions": { "deny": ["mcp__star__*"] } }`
      }))
      const denied = (server: string, tool: string) => found.denies({ server, tool })
      assert.include(denied("whole", "any"), "mcp__whole")
      assert.include(denied("some", "get_x"), "home/.claude/settings.json")
      assert.isUndefined(denied("some", "set_x"))
      assert.include(denied("my jobs", "kill"), "mcp__my_jobs__kill")
      assert.isUndefined(denied("my jobs", "status"))
      assert.include(denied("star", "x"), "settings.local.json")
      assert.isUndefined(denied("wholesale", "x"))
    }))

  it.effect("tells a broken file, and works with the others", () =>
    Effect.gen(function*() {
      const { found, root } = yield* discover(() => ({
        "home/.claude.json": { mcpServers: servers(["u", "user"]) },
        "work/project/.mcp.json": `{\n "mcpServers": {`
      }))
      assert.deepStrictEqual(commands(found), { u: "user" })
      assert.include(found.problems.join(), `${root}/work/project/.mcp.json:2`)
    }))

  it.effect("skips itself, and keeps its own variables from the others", () =>
    Effect.gen(function*() {
      const { found } = yield* discover(() => ({
        "home/.claude.json": {
          mcpServers: {
            s: { command: "sh", args: ["run.sh"], env: { MCP_SENTINEL_ID: "id1", OWN: "o" }, timeout: 77 },
            a: { command: "x" }
          }
        }
      }), { env: { MCP_SENTINEL_ID: "id1", OWN: "o" } })
      assert.deepStrictEqual(found.unusable.map(({ kind, name }) => [name, kind]), [["s", "self"]])
      const { endpoint } = found.servers[0]!
      assert.deepInclude(endpoint, { env: { PATH: "/bin", MCP_SENTINEL_DEPTH: "1" } })
      assert.strictEqual(found.ownCallTimeout, 77)
    }))
})
