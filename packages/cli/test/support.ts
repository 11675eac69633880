import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { ProcessInfo } from "../src/Ancestry.js"
import type { Environment } from "../src/HostEnvironment.js"
import { HostEnvironment } from "../src/HostEnvironment.js"

/** A folder that lives as long as the scope, with these files in it. */
export const folder = (files: Readonly<Record<string, string>> = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = realpathSync(mkdtempSync(join(tmpdir(), "mcp-sentinel-cli-")))
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(path, name)), { recursive: true })
        writeFileSync(join(path, name), text, { mode: text.startsWith("#!") ? 0o755 : 0o644 })
      }
      return path
    }),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

export interface Host {
  readonly env?: Environment
  readonly cwd?: string
  readonly home?: string
  readonly argv?: ReadonlyArray<string>
  readonly ancestors?: ReadonlyArray<ProcessInfo>
}

/** The surroundings of a test's own making; PATH is the real one unless `env` says otherwise. */
export const hostEnvironment = (host: Host) =>
  Layer.succeed(HostEnvironment, {
    env: host.env ?? {},
    cwd: host.cwd ?? "/",
    home: host.home ?? "/nowhere",
    platform: process.platform,
    argv: host.argv ?? ["node", "/opt/mcp-sentinel/bin.mjs", "mcp"],
    ancestors: Effect.succeed(host.ancestors ?? [])
  })

export const host = (given: Host) => Layer.merge(hostEnvironment(given), NodeFileSystem.layer)

/** An ancestor that was started with this environment. */
export const ancestor = (argv: ReadonlyArray<string>, env: Environment = {}, exe?: string): ProcessInfo => ({
  pid: 2,
  argv,
  exe,
  variable: (name) => Effect.succeed(env[name])
})
