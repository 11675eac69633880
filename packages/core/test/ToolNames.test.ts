import { assert, it } from "@effect/vitest"
import { matchNames } from "@gcszhn/mcp-sentinel-core/ToolNames"
import type { NamedServer, PublicNames } from "@gcszhn/mcp-sentinel-core/ToolNames"

const clean = (name: string) => name.replace(/[^a-zA-Z0-9_-]/g, "_")
const opencode: PublicNames = ({ server, tool }) => [`${clean(server)}_${clean(tool)}`]
const claude: PublicNames = ({ server, tool }) => [`mcp__${clean(server)}__${clean(tool)}`]
const none: PublicNames = () => []

const known: ReadonlyArray<NamedServer> = [
  { name: "my jobs", tools: ["sleep", "get.status"] },
  { name: "jobs", tools: ["sleep", "jobs_sleep"] }
]
const unknown: ReadonlyArray<NamedServer> = [{ name: "my" }, { name: "my_jobs" }, { name: "other" }]
const match = (servers: ReadonlyArray<NamedServer>, publicNames: PublicNames) => (server: string, tool: string) =>
  matchNames({ server, tool }, servers, publicNames)
const found = (server: string, tool: string) => ({ _tag: "Found", target: { server, tool } }) as const

it("takes raw names first", () => {
  const at = match(known, opencode)
  assert.deepStrictEqual(at("jobs", "sleep"), found("jobs", "sleep"))
  assert.deepStrictEqual(at("jobs", "jobs_sleep"), found("jobs", "jobs_sleep"))
  assert.deepStrictEqual(match(unknown, none)("my", "anything"), found("my", "anything"))
})

it("understands public and sanitised names", () => {
  assert.deepStrictEqual(match(known, opencode)("my jobs", "my_jobs_get_status"), found("my jobs", "get.status"))
  assert.deepStrictEqual(match(known, none)("my_jobs", "get_status"), found("my jobs", "get.status"))
  assert.deepStrictEqual(match(known, claude)("mcp__jobs", "mcp__jobs__sleep"), found("jobs", "sleep"))
  assert.deepStrictEqual(match(known, claude)("anything", "mcp__my_jobs__sleep"), found("my jobs", "sleep"))
})

it("asks for the tools where only they can tell", () => {
  assert.deepStrictEqual(match(unknown, opencode)("other", "other_look"), {
    _tag: "NeedsTools",
    server: "other",
    guess: "look"
  })
  assert.deepStrictEqual(match(unknown, claude)("claude", "mcp__other__look"), {
    _tag: "NeedsTools",
    server: "other",
    guess: "look"
  })
})

it("says what is unknown or unclear", () => {
  assert.deepStrictEqual(match(known, opencode)("nowhere", "look"), { _tag: "UnknownServer" })
  assert.deepStrictEqual(match(known, opencode)("jobs", "look"), {
    _tag: "UnknownTool",
    server: "jobs",
    tools: ["sleep", "jobs_sleep"]
  })
  assert.deepStrictEqual(match(unknown, opencode)("nowhere", "my_jobs_sleep"), {
    _tag: "Ambiguous",
    candidates: [{ server: "my", tool: "jobs_sleep" }, { server: "my_jobs", tool: "sleep" }]
  })
  assert.deepStrictEqual(match([{ name: "a b" }, { name: "a.b" }], none)("a_b", "x"), {
    _tag: "Ambiguous",
    candidates: [{ server: "a b", tool: "x" }, { server: "a.b", tool: "x" }]
  })
  assert.deepStrictEqual(match([{ name: "s", tools: ["a b", "a.b"] }], none)("s", "a_b"), {
    _tag: "Ambiguous",
    candidates: [{ server: "s", tool: "a b" }, { server: "s", tool: "a.b" }]
  })
  assert.deepStrictEqual(match(known, none)("nowhere", "sleep"), { _tag: "UnknownServer" })
})
