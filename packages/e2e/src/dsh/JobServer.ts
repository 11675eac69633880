import * as Effect from "effect/Effect"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The jobs behind one server process, which a test moves on. */
export interface JobServer {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** what `get_status` says of a job from now on */
  readonly set: (id: string, state: unknown) => void
  /** the next look at a job ends the process */
  readonly dieAt: (id: string) => void
  /** makes the next process of the server exit at once, or no longer */
  readonly breakIt: (broken: boolean) => void
  readonly events: () => ReadonlyArray<{ readonly event: string; readonly pid: number; readonly id?: string }>
}

export const temporaryFolder = (name: string) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), `mcp-sentinel-${name}-`))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  )

/** A folder of jobs and the command of a server that tells of them; the server itself is started by the harness. */
export const jobServer = Effect.map(temporaryFolder("jobs"), (folder): JobServer => ({
  command: process.execPath,
  args: [fileURLToPath(new URL("./job-server.mjs", import.meta.url)), folder],
  set: (id, state) => writeFileSync(join(folder, `${id}.json`), JSON.stringify(state)),
  dieAt: (id) => writeFileSync(join(folder, `${id}.die`), ""),
  breakIt: (broken) => broken ? writeFileSync(join(folder, "broken"), "") : rmSync(join(folder, "broken")),
  events: () =>
    existsSync(join(folder, "log"))
      ? readFileSync(join(folder, "log"), "utf8").trim().split("\n").map((line) => JSON.parse(line))
      : []
}))
