import { assert, describe, it } from "@effect/vitest"
import { judgeMishap, judgeResult, mayMeanUnknownTool, retryAfterMillis } from "@gcszhn/mcp-sentinel-core/mcp/Failures"
import type { Circumstances } from "@gcszhn/mcp-sentinel-core/mcp/Failures"
import { makeFrameReader, replyIdOf } from "@gcszhn/mcp-sentinel-core/mcp/FrameReader"
import type { Frame } from "@gcszhn/mcp-sentinel-core/mcp/FrameReader"
import { HttpFailure, Mishap, mishapOf } from "@gcszhn/mcp-sentinel-core/mcp/Mishap"
import { masking } from "@gcszhn/mcp-sentinel-core/mcp/Secrets"
import { McpError } from "@modelcontextprotocol/sdk/types.js"

const at = { server: "jobs", tool: "look", phase: "call", everConnected: true, now: 0, noise: 0, stderr: "" } as const
const starting = { ...at, phase: "connect", everConnected: false } as const
const answer = (status: number, more = {}) => Mishap.Http({ status, contentType: "text/plain", body: "no", ...more })

describe("judgeMishap", () => {
  const rows: ReadonlyArray<[string, Mishap, Circumstances, string, boolean, RegExp]> = [
    [
      "command not found at first start",
      Mishap.SpawnFailed({ command: "nope", code: "ENOENT" }),
      starting,
      "fatal",
      false,
      /"nope".*ENOENT/
    ],
    [
      "command not found in a folder",
      Mishap.SpawnFailed({ command: "nope", code: "ENOENT", cwd: "/x" }),
      starting,
      "fatal",
      false,
      /"\/x" exists/
    ],
    [
      "command gone later",
      Mishap.SpawnFailed({ command: "nope", code: "ENOENT" }),
      { ...starting, everConnected: true },
      "transport",
      true,
      /nope/
    ],
    [
      "crash at start",
      Mishap.Ended({ how: "its process ended with exit code 3" }),
      starting,
      "transport",
      true,
      /exit code 3 before it answered initialize/
    ],
    [
      "crash in a call",
      Mishap.Ended({ how: "its process was ended by SIGKILL" }),
      at,
      "transport",
      true,
      /tool "look": its process was ended by SIGKILL/
    ],
    [
      "initialize hangs",
      Mishap.Silent({ millis: 50 }),
      starting,
      "transport",
      true,
      /did not answer initialize within 50 ms/
    ],
    ["call hangs", Mishap.Silent({ millis: 50 }), at, "transport", true, /did not answer within 50 ms/],
    ["too big", Mishap.TooBig({ bytes: 9, limit: 8 }), at, "transport", false, /"jobs".*9 bytes.*limit of 8/],
    ["stream without answer", Mishap.NoReply(), at, "transport", true, /without an answer/],
    ["invalid arguments", Mishap.Rpc({ code: -32602, message: "id: required" }), at, "fatal", false, /id: required/],
    ["another JSON-RPC error", Mishap.Rpc({ code: -32603, message: "boom" }), at, "tool", false, /boom/],
    ["unknown method", Mishap.Rpc({ code: -32601, message: "nope" }), at, "tool", false, /nope/],
    [
      "stale session as JSON-RPC error",
      Mishap.Rpc({ code: -32000, message: "Session not found" }),
      at,
      "transport",
      true,
      /Session/
    ],
    ["initialize refused", Mishap.Rpc({ code: -32603, message: "not yet" }), starting, "transport", true, /not yet/],
    ["401", answer(401), at, "fatal", false, /wants credentials/],
    [
      "401 with OAuth",
      answer(401, { wwwAuthenticate: "Bearer" }),
      starting,
      "fatal",
      false,
      /OAuth.*cannot be reused.*static header/
    ],
    ["403", answer(403), at, "fatal", false, /do not allow/],
    ["404 in a session", answer(404), at, "transport", true, /404: no/],
    ["404 at start", answer(404), starting, "transport", true, /check the URL/],
    [
      "400 without session",
      answer(400, { body: "{\"error\":{\"message\":\"Bad Request: No valid session ID provided\"}}" }),
      at,
      "transport",
      true,
      /: Bad Request: No valid session ID provided$/
    ],
    ["500", answer(500, { body: "{\"error\":\"db\"}" }), at, "transport", true, /500: db/],
    ["500 with other JSON", answer(500, { body: "{\"a\":1}" }), at, "transport", true, /500: \{"a":1\}/],
    ["500 without body", answer(500, { body: "" }), at, "transport", true, /500$/],
    ["429", answer(429), at, "transport", false, /429/],
    ["503 with Retry-After", answer(503, { retryAfter: "7" }), at, "transport", false, /503/],
    [
      "HTML of a proxy",
      answer(200, { contentType: "text/html", body: "<html>login" }),
      at,
      "transport",
      true,
      /text\/html instead of MCP.*proxy.*<html>login/
    ],
    ["no content type", answer(200, { contentType: undefined }), at, "transport", true, /no content type/],
    ["unknown protocol version", Mishap.Version({ version: "2099-01-01" }), starting, "fatal", false, /2099-01-01/],
    ["no connection", Mishap.Network({ message: "connect ECONNREFUSED" }), at, "transport", true, /ECONNREFUSED/]
  ]
  for (const [name, mishap, circumstances, kind, repeat, text] of rows) {
    it(name, () => {
      const judgement = judgeMishap(mishap, circumstances)
      assert.strictEqual(judgement.kind, kind)
      assert.strictEqual(judgement.repeat, repeat)
      assert.match(judgement.message, text)
    })
  }

  it("tells what the process said", () => {
    const { message } = judgeMishap(Mishap.Silent({ millis: 5 }), { ...starting, noise: 2, stderr: "last words" })
    assert.match(message, /2 line\(s\) that are not JSON-RPC/)
    assert.match(message, /stderr:\nlast words/)
  })

  it("keeps Retry-After in seconds and as a date", () => {
    const now = Date.UTC(2026, 0, 1)
    const wait = (header: string | undefined) => retryAfterMillis(header, now)
    assert.strictEqual(judgeMishap(answer(429, { retryAfter: "7" }), at).retryAfter, 7_000)
    assert.strictEqual(wait("Thu, 01 Jan 2026 00:00:09 GMT"), 9_000)
    assert.strictEqual(wait("Wed, 31 Dec 2025 00:00:00 GMT"), 0)
    assert.isUndefined(wait("soon"))
    assert.isUndefined(wait(undefined))
  })
})

describe("judgeResult", () => {
  const error = (text: string) => ({ isError: true, content: [{ type: "text", text }] })
  it("takes the SDK's own validation text as fatal, every other error as the tool's", () => {
    assert.strictEqual(judgeResult(error("MCP error -32602: Input validation error"), at)?.kind, "fatal")
    assert.deepStrictEqual(judgeResult(error("ENOENT: no such file"), at), {
      kind: "tool",
      message: "ENOENT: no such file"
    })
    assert.match(judgeResult({ isError: true }, at)?.message ?? "", /without text/)
    assert.isUndefined(judgeResult({ content: [], isError: false }, at))
    assert.isUndefined(judgeResult("odd", at))
  })
  it("knows what may come from a misspelt tool", () => {
    for (const text of ["Unknown tool: lok", "MCP error -32602: x", "Tool lok not found", "JSON-RPC error -32601"]) {
      assert.isTrue(mayMeanUnknownTool(text), text)
    }
    for (const text of ["file not found", "the tool broke"]) assert.isFalse(mayMeanUnknownTool(text), text)
  })
})

describe("mishapOf", () => {
  it("reads what the SDK and fetch throw", () => {
    const network = (error: unknown) => mishapOf(error)
    assert.deepStrictEqual(
      mishapOf(McpError.fromError(-32001, "Request timed out", { timeout: 9 })),
      Mishap.Silent({ millis: 9 })
    )
    assert.deepStrictEqual(
      mishapOf(McpError.fromError(-32001, "custom")),
      Mishap.Rpc({ code: -32001, message: "custom" })
    )
    assert.strictEqual(mishapOf(McpError.fromError(-32000, "Connection closed"))._tag, "Ended")
    assert.deepStrictEqual(mishapOf(McpError.fromError(-32000, "mine")), Mishap.Rpc({ code: -32000, message: "mine" }))
    assert.deepStrictEqual(
      mishapOf(new Error("Server's protocol version is not supported: 2099-01-01")),
      Mishap.Version({ version: "2099-01-01" })
    )
    assert.strictEqual(mishapOf(new HttpFailure({ status: 500, contentType: undefined, body: "" }))._tag, "Http")
    assert.deepStrictEqual(network("odd"), Mishap.Network({ message: "odd" }))
    assert.deepStrictEqual(network(new Error("fetch failed", { cause: "why" })), Mishap.Network({ message: "why" }))
    assert.deepStrictEqual(
      network(new Error("fetch failed", { cause: new AggregateError([new Error("a"), new Error("b")]) })),
      Mishap.Network({ message: "a; b" })
    )
    assert.deepStrictEqual(
      mishapOf(Object.assign(new Error("Redirect not followed"), { code: 302 })),
      Mishap.Http({ status: 302, contentType: undefined, body: "Redirect not followed" })
    )
  })
})

describe("FrameReader", () => {
  const frames = (limit: number, ...chunks: ReadonlyArray<string>) => {
    const seen: Array<Frame> = []
    const read = makeFrameReader(limit, (frame) => seen.push(frame))
    for (const chunk of chunks) read(Buffer.from(chunk))
    return seen
  }
  it("splits and joins chunks", () => {
    assert.deepStrictEqual(frames(99, "a", "b\nc\n", "\nd").map((frame) => frame._tag === "Line" && frame.text), [
      "ab",
      "c",
      ""
    ])
  })
  it("drops a long line and reads on", () => {
    const [big, next] = frames(8, "{\"id\":7,", "0123456789", "ab}\nok\n")
    assert.isTrue(big?._tag === "TooBig" && big.bytes === 21 && replyIdOf(big) === 7)
    assert.deepStrictEqual(next, { _tag: "Line", text: "ok" })
    const [whole] = frames(4, `{"result":"${"x".repeat(900)}","jsonrpc":"2.0","id":12}\n`)
    assert.isTrue(whole?._tag === "TooBig" && replyIdOf(whole) === 12)
    assert.isUndefined(replyIdOf({ head: "log", tail: "line" }))
  })
})

describe("masking", () => {
  it("hides what may be secret, and keeps places readable", () => {
    const mask = masking({
      name: "s",
      endpoint: { _tag: "stdio", command: "x", args: [], env: { PATH: "/usr/bin", API_KEY: "abcd-1234", N: "1" } }
    })
    assert.strictEqual(mask("key abcd-1234 in /usr/bin, 1"), "key *** in /usr/bin, 1")
    const started = masking({
      name: "s",
      endpoint: {
        _tag: "stdio",
        command: "x",
        args: [
          "/srv/index.js",
          "--api-key",
          "arg-1111",
          "--token=arg-2222",
          "-e",
          "API_KEY=arg-3333",
          "--header",
          "Authorization: Bearer arg-4444",
          "postgres://me:arg-5555@db/jobs",
          "--port",
          "8080"
        ],
        env: { DATABASE_URL: "mysql://root:env-6666@db" }
      }
    })
    assert.strictEqual(
      started("/srv/index.js arg-1111 arg-2222 arg-3333 arg-4444 arg-5555 env-6666 8080 postgres"),
      "/srv/index.js *** *** *** *** *** *** 8080 postgres"
    )
    const web = masking({
      name: "s",
      endpoint: {
        _tag: "http",
        url: "http://me:p%40ssword@h/?token=tok-9",
        headers: { Authorization: "Bearer zyx-987" },
        transport: "auto"
      }
    })
    assert.strictEqual(web("Bearer zyx-987 zyx-987 p@ssword p%40ssword tok-9"), "*** *** *** *** ***")
    const odd = masking({
      name: "s",
      endpoint: { _tag: "http", url: "http://me:50%off@h/?token=a%20b%20c", headers: {}, transport: "auto" }
    })
    assert.strictEqual(odd("50%off, a b c, a%20b%20c"), "***, ***, ***")
    assert.strictEqual(
      masking({ name: "s", endpoint: { _tag: "http", url: "not a url", headers: {}, transport: "auto" } })("x"),
      "x"
    )
  })
})
