import { assert, describe, it } from "@effect/vitest"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js"
import { PassThrough } from "node:stream"
import { greet, protocolVersions } from "../src/Greeting.js"
import { capabilities, instructions, serverInfo } from "../src/identity.js"
import { GreetedTransport } from "../src/McpServer.js"

const line = (message: unknown) => `${JSON.stringify(message)}\n`

const initialize = (overrides: Record<string, unknown> = {}, id: unknown = 0) =>
  line({
    jsonrpc: "2.0",
    id,
    method: "initialize",
    params: {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "host", version: "1.0.0" },
      ...overrides
    }
  })

const text = (stream: PassThrough): string => {
  const chunk: unknown = stream.read()
  return chunk === null ? "" : String(chunk)
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 20))

const streams = () => ({ stdin: new PassThrough(), stdout: new PassThrough() })

/** The server that the greeting stands in for, reading what the greeting has left. */
const serveOn = async ({ stdin, stdout }: ReturnType<typeof streams>, greeted?: string | number) => {
  const server = new Server(serverInfo, { capabilities, instructions })
  await server.connect(new GreetedTransport({ stdin, stdout, greeted }))
  await settle()
}

describe("greeting", () => {
  it("knows the protocol versions of the SDK", () => {
    assert.deepStrictEqual(protocolVersions, SUPPORTED_PROTOCOL_VERSIONS)
  })

  it.each(protocolVersions)("answers %s as the server would, and the server does not answer again", async (version) => {
    const host = streams()
    const plain = streams()
    host.stdin.write(initialize({ protocolVersion: version }, "first"))
    plain.stdin.write(initialize({ protocolVersion: version }, "first"))
    assert.deepStrictEqual(await greet(host.stdin, host.stdout), { greeted: "first" })
    const greeting = text(host.stdout)
    await serveOn(plain)
    assert.strictEqual(greeting, text(plain.stdout))
    await serveOn(host, "first")
    host.stdin.write(line({ jsonrpc: "2.0", id: "first", method: "ping" }))
    await settle()
    assert.strictEqual(text(host.stdout), line({ result: {}, jsonrpc: "2.0", id: "first" }))
  })

  it("takes nothing away from the server, however the bytes come", async () => {
    const host = streams()
    const bytes = initialize({}, 7)
    host.stdin.write(bytes.slice(0, 30))
    const greeting = greet(host.stdin, host.stdout)
    await settle()
    host.stdin.write(`${bytes.slice(30)}${line({ jsonrpc: "2.0", id: 8, method: "ping" })}{"jsonrpc":`)
    assert.deepStrictEqual(await greeting, { greeted: 7 })
    assert.match(text(host.stdout), /"id":7/)
    await serveOn(host, 7)
    host.stdin.write("\"2.0\",\"id\":9,\"method\":\"ping\"}\n")
    await settle()
    assert.strictEqual(
      text(host.stdout),
      line({ result: {}, jsonrpc: "2.0", id: 8 }) + line({ result: {}, jsonrpc: "2.0", id: 9 })
    )
  })

  it.each([
    ["an unknown version", initialize({ protocolVersion: "2099-01-01" })],
    ["no client", initialize({ clientInfo: undefined })],
    ["no capabilities", initialize({ capabilities: null })],
    ["an id that is none", initialize({}, 1.5)],
    ["another method", line({ jsonrpc: "2.0", id: 1, method: "ping" })],
    ["no JSON", "hello\n"],
    ["a list", "[]\n"]
  ])("leaves %s to the server", async (_, message) => {
    const host = streams()
    host.stdin.write(message)
    assert.deepStrictEqual(await greet(host.stdin, host.stdout), { greeted: undefined })
    assert.strictEqual(text(host.stdout), "")
    await settle()
    assert.strictEqual(text(host.stdin), message)
  })

  it.each(["", "{\"jsonrpc\":"])("ends with a stdin that ends without a request (%j)", async (rest) => {
    const host = streams()
    host.stdin.end(rest)
    assert.strictEqual(await greet(host.stdin, host.stdout), false)
  })
})
