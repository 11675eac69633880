import { assert, it } from "@effect/vitest"
import { readConfig } from "../src/OpencodeServers.js"

const around = { directory: "/project", env: { PATH: "/bin", UNSET: undefined }, states: new Map<string, string>() }
const read = (mcp: Record<string, unknown>, states: ReadonlyArray<readonly [string, string]> = []) =>
  readConfig({ mcp }, { ...around, states: new Map(states) })

it("gives a local server what opencode gives it: command, folder, whole environment, timeout", () => {
  const catalogue = readConfig({
    experimental: { mcp_timeout: 9_000 },
    mcp: {
      jobs: {
        type: "local",
        command: ["node", "server.mjs", "x y"],
        cwd: "tools",
        environment: { JOB_TOKEN: "t" },
        enabled: true,
        timeout: 4_000
      },
      plain: { type: "local", command: ["opencode", "x", "some-server"] }
    }
  }, around)
  assert.deepStrictEqual(catalogue.servers, [{
    name: "jobs",
    endpoint: {
      _tag: "stdio",
      command: "node",
      args: ["server.mjs", "x y"],
      env: { PATH: "/bin", JOB_TOKEN: "t" },
      cwd: "/project/tools"
    },
    callTimeout: 4_000,
    startupTimeout: 4_000,
    source: "OpenCode's configuration"
  }, {
    name: "plain",
    endpoint: {
      _tag: "stdio",
      command: "opencode",
      args: ["x", "some-server"],
      env: { PATH: "/bin", BUN_BE_BUN: "1" },
      cwd: "/project"
    },
    callTimeout: 9_000,
    source: "OpenCode's configuration"
  }])
})

it("gives a remote server its URL and headers", () => {
  const { servers } = read({
    far: { type: "remote", url: "https://example.org/mcp", headers: { Authorization: "Bearer t" }, oauth: false }
  })
  assert.deepStrictEqual(servers[0]?.endpoint, {
    _tag: "http",
    url: "https://example.org/mcp",
    headers: { Authorization: "Bearer t" },
    transport: "auto"
  })
})

it("keeps a hidden secret from being sent, and names the field but no value", () => {
  const { servers, unusable } = read({
    a: { type: "remote", url: "https://example.org/mcp", headers: { Authorization: "***", Accept: "x" } },
    b: { type: "local", command: ["node"], environment: { API_KEY: "[redacted]", PUBLIC: "visible-value" } },
    c: { type: "remote", url: "***" }
  })
  assert.deepStrictEqual(servers, [])
  assert.deepStrictEqual(unusable.map(({ kind, name }) => [name, kind]), [["a", "broken"], ["b", "broken"], [
    "c",
    "broken"
  ]])
  assert.include(unusable[0]?.reason, "headers.Authorization")
  assert.include(unusable[1]?.reason, "environment.API_KEY")
  assert.notInclude(unusable[1]?.reason, "visible-value")
  assert.include(unusable[2]?.reason, "mcp.url")
})

it("follows the switch of a running opencode over its configuration", () => {
  const jobs = { type: "local", command: ["node"] }
  assert.deepStrictEqual(read({ jobs: { ...jobs, enabled: false } }).unusable[0]?.kind, "disabled")
  assert.deepStrictEqual(read({ jobs: { ...jobs, enabled: false } }, [["jobs", "connected"]]).servers.length, 1)
  assert.deepStrictEqual(read({ jobs }, [["jobs", "disabled"]]).unusable[0]?.kind, "disabled")
  assert.deepStrictEqual(read({ jobs }, [["jobs", "failed"]]).servers.length, 1)
})

it("tells what is wrong with an entry and keeps the good ones", () => {
  const { problems, servers, unusable } = read({
    switched: { enabled: false },
    untyped: { enabled: true },
    empty: { type: "local", command: [] },
    nothing: null,
    good: { type: "local", command: ["node"] }
  })
  assert.deepStrictEqual(servers.map(({ name }) => name), ["good"])
  assert.deepStrictEqual(unusable.map(({ kind, name }) => [name, kind]), [
    ["switched", "disabled"],
    ["untyped", "broken"],
    ["empty", "broken"],
    ["nothing", "broken"]
  ])
  assert.include(unusable[1]?.reason, `"type": "local"`)
  assert.deepStrictEqual(problems, [])
  assert.strictEqual(readConfig({ mcp: "what" }, around).problems.length, 1)
  assert.deepStrictEqual(readConfig({}, around).servers, [])
})
