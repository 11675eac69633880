import { assert, describe, it } from "@effect/vitest"
import { describeKnown, findTool, publicToolName } from "../src/names.js"

describe("publicToolName", () => {
  it("joins clean names", () => assert.strictEqual(publicToolName("ci", "get_status"), "mcp__ci__get_status"))

  it("replaces other characters and keeps different tools apart by a hash", () => {
    const dotted = publicToolName("ci", "job.status")
    assert.match(dotted, /^mcp__ci__job_status_[0-9a-f]{12}$/)
    assert.notStrictEqual(dotted, publicToolName("ci", "job/status"))
  })

  it("never exceeds 64 characters", () => {
    const long = publicToolName("ci", "a".repeat(80))
    assert.strictEqual(long.length, 64)
    assert.match(long, /a_[0-9a-f]{12}$/)
    assert.strictEqual(publicToolName("ci", "a".repeat(55)), `mcp__ci__${"a".repeat(55)}`)
  })
})

describe("findTool", () => {
  const dotted = publicToolName("ci", "job.status")
  const slashed = publicToolName("ci", "job/status")
  const long = publicToolName("ci", "a".repeat(80))
  const names = ["read_file", "mcp__ci__get_status", dotted, long, "mcp__ci_2__get_status"]
  const nameOf = (server: string, tool: string) => {
    const match = findTool(names, { server, tool })
    return match._tag === "Found" ? publicToolName(match.target.server, match.target.tool) : match._tag
  }

  it("takes raw, public and sanitised names", () => {
    assert.strictEqual(nameOf("ci", "get_status"), "mcp__ci__get_status")
    assert.strictEqual(nameOf("mcp__ci", "get_status"), "mcp__ci__get_status")
    assert.strictEqual(nameOf("ci", "mcp__ci__get_status"), "mcp__ci__get_status")
    assert.strictEqual(nameOf("ci", "job.status"), dotted)
    assert.strictEqual(nameOf("ci", "job_status"), dotted)
    assert.strictEqual(nameOf("ci", dotted), dotted)
    assert.strictEqual(nameOf("ci", "a".repeat(80)), long)
  })

  it("takes a public name whatever the server", () => {
    assert.strictEqual(nameOf("anything", "mcp__ci_2__get_status"), "mcp__ci_2__get_status")
  })

  it("does not take a near miss, or a tool that is no MCP tool", () => {
    assert.strictEqual(nameOf("c", "get_status"), "UnknownServer")
    assert.strictEqual(nameOf("ci", "get_statsu"), "UnknownTool")
    assert.strictEqual(nameOf("ci", "read_file"), "UnknownTool")
    assert.strictEqual(nameOf("", ""), "UnknownServer")
  })

  it("knows a server whose own name holds two underscores", () => {
    const match = findTool(["mcp__a__b__c"], { server: "a__b", tool: "c" })
    assert.deepStrictEqual(match, { _tag: "Found", target: { server: "a__b", tool: "c" } })
  })

  it("does not choose between two tools that look alike", () => {
    const match = findTool([dotted, slashed], { server: "ci", tool: "job_status" })
    assert.strictEqual(match._tag, "Ambiguous")
    if (match._tag === "Ambiguous") assert.strictEqual(match.candidates.length, 2)
  })
})

describe("describeKnown", () => {
  it("lists the server's tools, else every MCP tool, else says what to add", () => {
    const names = ["read_file", "mcp__ci__get_status", "mcp__db__query"]
    assert.strictEqual(describeKnown(names, { server: "ci", tool: "x" }), "Its tools are: `get_status`.")
    assert.include(describeKnown(names, { server: "cl", tool: "x" }), "`mcp__ci__get_status`, `mcp__db__query`")
    assert.include(describeKnown(["read_file"], { server: "ci", tool: "x" }), "dsh-mcp-client")
  })

  it("does not list without end", () => {
    const names = Array.from({ length: 100 }, (_, index) => `mcp__ci__tool_${index}`)
    assert.include(describeKnown(names, { server: "ci", tool: "x" }), "and 60 more")
  })
})
