import { assert, describe, it } from "@effect/vitest"
import { Ajv } from "ajv"
import * as Effect from "effect/Effect"
import { parse } from "jsonc-parser"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { readConfigFile } from "../../src/discovery/ConfigFile.js"
import type { Found } from "../../src/discovery/Found.js"
import type { Environment } from "../../src/HostEnvironment.js"
import { folder, host } from "../support.js"

const env: Environment = { PATH: "/bin", HOME: "/home/me", SECRET: "s3cr3t", EMPTY: "", BASH_FUNC: "()" }

const read = (text: string, given: Environment = env) =>
  Effect.gen(function*() {
    const cwd = yield* folder({ "servers.json": text })
    const found = yield* readConfigFile("servers.json").pipe(Effect.provide(host({ env: given, cwd })))
    return { found, file: join(cwd, "servers.json") }
  }).pipe(Effect.scoped)

const one = (found: Found, name = "a") => {
  const server = found.servers.find((candidate) => candidate.name === name)
  assert.isDefined(server, JSON.stringify(found))
  return server
}

const good: Readonly<Record<string, string>> = {
  "servers": `{ "servers": { "a": { "command": "node", "args": ["x y", "z"] } } }`,
  "mcpServers with comments": `// mine
    { "mcpServers": { "a": { "command": "node", "args": ["x y", "z"], } /* end */ }, }`,
  "mcp": `{ "mcp": { "a": { "type": "local", "command": ["node", "x y", "z"] } } }`,
  "bare map": `{ "$schema": "./mcp-config.schema.json", "a": { "command": ["node", "x y"], "args": ["z"] } }`,
  "byte order mark": `\uFEFF{ "a": { "type": "stdio", "command": "node", "args": ["x y", "z"], "env": null } }`
}

const remote: ReadonlyArray<readonly [entry: string, transport: "auto" | "http" | "sse"]> = [
  [`{ "url": "http://h/mcp" }`, "auto"],
  [`{ "type": "remote", "url": "http://h/mcp" }`, "auto"],
  [`{ "type": "http", "url": "http://h/mcp" }`, "http"],
  [`{ "type": "streamable-http", "url": "http://h/mcp" }`, "http"],
  [`{ "transport": "streamable_http", "uri": "http://h/mcp" }`, "http"],
  [`{ "type": "streamableHttp", "serverUrl": "http://h/mcp" }`, "http"],
  [`{ "httpUrl": "http://h/mcp" }`, "auto"],
  [`{ "type": "sse", "url": "http://h/mcp" }`, "sse"]
]

/** entry, line of the fault below the entry's own, words of the reason */
const bad: ReadonlyArray<readonly [entry: string, line: number, words: ReadonlyArray<string>]> = [
  [`5`, 0, ["must be an object"]],
  [`{}`, 0, [`neither "command" nor "url"`]],
  [`{\n"command": 7 }`, 1, [`"command" must be`]],
  [`{\n"command": [] }`, 1, [`"command" must be`]],
  [`{ "command": "x",\n"args": [\n1] }`, 1, [`"args" must be a list of strings`]],
  [`{ "command": "x",\n"env": {\n"T": 5 } }`, 2, [`"T" in "env"`, "quotes"]],
  [`{ "command": "x",\n"url": "http://h" }`, 0, [`both "command" and "url"`]],
  [`{ "url": "http://h",\n"httpUrl": "http://h" }`, 1, [`both "url" and "httpUrl"`]],
  [`{ "type": "http",\n"command": "x" }`, 0, [`needs a "url"`]],
  [`{\n"type": "ws", "url": "ws://h" }`, 1, [`"type" must be`]],
  [`{\n"url": "h.example/mcp?key=s3cr3t" }`, 1, ["http:// or https://"]],
  [`{ "url": "http://h", "headers": {\n"bad name": "v" } }`, 1, ["HTTP does not allow"]],
  [`{ "url": "http://h", "headers": {\n"X": "a\\nb" } }`, 1, ["HTTP does not allow"]],
  [`{ "url": "http://h",\n"headersHelper": "x" }`, 1, ["headersHelper"]],
  [`{ "command": "x",\n"enabled": "no" }`, 1, [`"enabled" must be true or false`]],
  [`{ "command": "x",\n"timeout": "9" }`, 1, [`"timeout"`, "milliseconds"]]
]

/** only their variables are wrong, which no schema can see */
const unset: ReadonlyArray<readonly [entry: string, field: string]> = [
  [`{ "command": "x", "args": ["\${NOPE}"] }`, "args"],
  [`{ "command": "\${NOPE}" }`, "command"],
  [`{ "command": "x", "env": { "T": "\${NOPE}" } }`, "env"],
  [`{ "url": "http://\${NOPE}/" }`, "url"],
  [`{ "url": "http://h", "headers": { "X": "a\${env:NOPE}" } }`, "headers"]
]

const schema = new Ajv({ strict: false }).compile(
  JSON.parse(readFileSync(new URL("../../schema/mcp-config.schema.json", import.meta.url), "utf8"))
)
const inSchema = (text: string): boolean => schema(parse(text.replace(/^\uFEFF/, ""), [], { allowTrailingComma: true }))

describe("readConfigFile", () => {
  for (const [name, text] of Object.entries(good)) {
    it.effect(`reads the form: ${name}`, () =>
      Effect.gen(function*() {
        const { found } = yield* read(text)
        const { endpoint } = one(found)
        assert.deepInclude(endpoint, { _tag: "stdio", command: "node", args: ["x y", "z"] })
        assert.deepStrictEqual([...found.problems, ...found.unusable], [])
        assert.isTrue(inSchema(text), JSON.stringify(schema.errors))
      }))
  }

  for (const [entry, transport] of remote) {
    it.effect(`reads the remote form ${entry}`, () =>
      Effect.gen(function*() {
        const text = `{ "servers": { "a": ${entry} } }`
        const { found } = yield* read(text)
        assert.deepStrictEqual(one(found).endpoint, { _tag: "http", url: "http://h/mcp", headers: {}, transport })
        assert.isTrue(inSchema(text), JSON.stringify(schema.errors))
      }))
  }

  for (const [entry, below, words] of bad) {
    it.effect(`says file, line and what is right: ${entry}`, () =>
      Effect.gen(function*() {
        const text = `{ "servers": {\n"ok": { "command": "y" },\n"a": ${entry} } }`
        const { file, found } = yield* read(text)
        const reason = found.unusable.find(({ name }) => name === "a")?.reason ?? ""
        assert.include(reason, `${file}:${3 + below}: `)
        for (const word of words) assert.include(reason, word)
        assert.notInclude(reason, "s3cr3t")
        assert.strictEqual(one(found, "ok").name, "ok")
      }))
  }

  it("ships a schema that refuses what the reader refuses", () => {
    const accepted = bad.filter(([entry]) => inSchema(`{ "servers": { "a": ${entry} } }`)).map(([entry]) => entry)
    // a schema cannot tell a whole address, nor what HTTP allows, nor which of two fields came first
    assert.deepStrictEqual(accepted.filter((entry) => !/"url"/.test(entry)), [`{ "type": "http",\n"command": "x" }`])
    assert.isTrue(inSchema(`{ "servers": { "off": { "enabled": false } } }`))
    assert.isFalse(inSchema(`{ "servers": [] }`))
  })

  for (const [entry, field] of unset) {
    it.effect(`names a variable that is not set in ${field}`, () =>
      Effect.gen(function*() {
        const { found } = yield* read(`{ "servers": { "a": ${entry} } }`)
        assert.include(found.unusable[0]?.reason, "${NOPE}")
        assert.include(found.unusable[0]?.reason, "${NOPE:-value}")
      }))
  }

  it.effect("expands variables, and a child gets the safe list, its own variables and the guard, nothing else", () =>
    Effect.gen(function*() {
      const { found } = yield* read(`{ "a": { "command": "\${HOME}/s", "args": ["\${EMPTY:-d}", "\${X:-\${}", "$HOME"],
        "env": { "T": "Bearer \${SECRET}", "HOME": "/else" } } }`)
      const { endpoint } = one(found)
      assert.deepStrictEqual(endpoint, {
        _tag: "stdio",
        command: "/home/me/s",
        args: ["d", "${", "$HOME"],
        env: { PATH: "/bin", HOME: "/else", T: "Bearer s3cr3t", MCP_SENTINEL_DEPTH: "1" },
        cwd: undefined
      })
    }))

  it.effect("keeps times and tool lists, and skips what is switched off", () =>
    Effect.gen(function*() {
      const { found } = yield* read(`{ "servers": {
        "a": { "command": "x", "timeout": 9000, "startupTimeout": 8, "enabledTools": ["t"], "disabledTools": ["u"] },
        "b": { "enabled": false },
        "c": { "disabled": true, "command": "x" } } }`)
      assert.deepInclude(one(found), {
        callTimeout: 9000,
        startupTimeout: 8,
        enabledTools: ["t"],
        disabledTools: ["u"]
      })
      assert.deepStrictEqual(found.unusable.map(({ kind, name }) => `${name} ${kind}`), ["b disabled", "c disabled"])
    }))

  it.effect("treats names from the prototype as names, and tells a name that is there twice", () =>
    Effect.gen(function*() {
      const { file, found } = yield* read(`{ "servers": {
        "__proto__": { "command": "p" },
        "constructor": { "command": "c", "env": { "__proto__": "x" } },
        "a": { "command": "first" },
        "a": { "command": "last" } } }`)
      assert.deepStrictEqual(found.servers.map(({ name }) => name), ["__proto__", "constructor", "a"])
      assert.deepInclude(one(found).endpoint, { command: "last" })
      assert.include(found.problems[0], `${file}:5`)
      assert.include(found.problems[0], "twice")
    }))

  it.effect("never answers with a silent empty list", () =>
    Effect.gen(function*() {
      const cases = [
        ``,
        `{`,
        `[]`,
        `7`,
        `{}`,
        `{ "servers": {} }`,
        `{ "servers": [] }`,
        `{ "mcpServers": "x" }`,
        `{\n\n"a": }`
      ]
      for (const text of cases) {
        const { file, found } = yield* read(text)
        assert.deepStrictEqual(found.servers, [], text)
        assert.include(found.problems.join(), file, text)
      }
      const { found } = yield* read(`{\n\n"a": }`)
      assert.include(found.problems.join(), "servers.json:3 is not valid JSON")
    }))

  it.effect("says what to do when the file is missing or is a folder", () =>
    Effect.gen(function*() {
      const cwd = yield* folder({ "x/y": "" })
      const missing = yield* readConfigFile("none.json").pipe(Effect.provide(host({ cwd })))
      assert.include(missing.problems[0], join(cwd, "none.json"))
      assert.include(missing.problems[0], "Create it as")
      const directory = yield* readConfigFile(join(cwd, "x")).pipe(Effect.provide(host({ cwd })))
      assert.include(directory.problems[0], "could not be read")
    }).pipe(Effect.scoped))
})
