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
    return match._tag === "Found" ? match.name : match._tag
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

  it("gives back a target that is found again", () => {
    for (const tool of ["get_status", "job.status", "job_status", dotted, long]) {
      const match = findTool(names, { server: "mcp__ci", tool })
      assert.strictEqual(match._tag, "Found", tool)
      if (match._tag === "Found") assert.strictEqual(nameOf(match.target.server, match.target.tool), match.name)
    }
  })

  it("does not take another server's tool, a near miss, or a tool that is no MCP tool", () => {
    assert.strictEqual(nameOf("ci", "mcp__ci_2__get_status"), "Missing")
    assert.strictEqual(nameOf("c", "get_status"), "Missing")
    assert.strictEqual(nameOf("ci", "get_statsu"), "Missing")
    assert.strictEqual(nameOf("ci", "read_file"), "Missing")
    assert.strictEqual(nameOf("", "mcp__ci__get_status"), "Missing")
  })

  it("does not choose between two tools that look alike", () => {
    const match = findTool([dotted, slashed], { server: "ci", tool: "job_status" })
    assert.deepStrictEqual(match, { _tag: "Ambiguous", names: [dotted, slashed] })
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
