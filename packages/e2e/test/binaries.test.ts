import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import * as Binaries from "../src/Binaries.js"

const exec = promisify(execFile)

describe("the installed harnesses answer with the pinned versions", () => {
  let home: string

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "mcp-sentinel-binaries-"))
  })
  afterAll(() => rm(home, { recursive: true, force: true }))

  const version = async ({ args, command }: Binaries.Binary): Promise<string> => {
    const { stdout } = await exec(command, [...args, "--version"], {
      env: {
        PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
        HOME: home,
        DSH_HOME: home,
        DSH_TELEMETRY_DISABLED: "1"
      },
      timeout: 60_000
    })
    return stdout.trim()
  }

  it("opencode", async () => assert.strictEqual(await version(Binaries.opencode()), "1.18.33"))
  it("codex", async () => assert.strictEqual(await version(Binaries.codex()), "codex-cli 0.171.0"))
  it("claude", async () => assert.strictEqual(await version(Binaries.claude()), "2.1.197 (Claude Code)"))
  it("dsh, on a Node that it supports", async () => {
    assert.strictEqual(await version(Binaries.dsh()), "0.1.0-rc.8")
    const { stdout } = await exec(Binaries.modernNode(), ["-p", "process.versions.node"])
    const [major = 0, minor = 0] = stdout.trim().split(".").map(Number)
    assert.isTrue(major > 22 || (major === 22 && minor >= 19), stdout)
  })
})
