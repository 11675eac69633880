import { assert } from "@effect/vitest"
import type { CliClient, ToolAnswer } from "@gcszhn/mcp-sentinel-testkit/CliClient"
import * as Effect from "effect/Effect"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

type Fields = Readonly<Record<string, unknown>>

/** An empty folder that goes with the scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "mcp-sentinel-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const node = (
  program: string,
  args: ReadonlyArray<string> = [],
  env: Readonly<Record<string, string>> = {}
) => ({
  command: process.execPath,
  args: [program, ...args],
  env
})

export const is = (path: string, value: unknown) => ({ path, is: "eq", value })

export const isDone = is("status", "done")
export const running = { json: { status: "running" } }
export const done = { json: { status: "done" } }

export const poll = (cli: CliClient, params: Fields) => cli.call("mcp_sentinel_poll", { interval: 1_000, ...params })

export const status = (cli: CliClient, id: string) => cli.call("mcp_sentinel_status", { id })

export const attach = (cli: CliClient, id: string, timeout?: number) =>
  cli.call("mcp_sentinel_attach", { id, ...timeout === undefined ? {} : { timeout } })

export const read = (cli: CliClient, id: string, range: Fields = { limit: 100 }) =>
  cli.call("mcp_sentinel_read", { id, ...range })

/** The id that a reply names; a reply without one is no acknowledgement. */
export const idOf = (answer: ToolAnswer): string => {
  const id = answer.structured["id"]
  assert.isString(id, answer.text)
  return String(id)
}

/** Starts a sentinel and waits for its end. */
export const waitFor = (cli: CliClient, params: Fields) =>
  Effect.flatMap(poll(cli, params), (ack) => attach(cli, idOf(ack)))

export const says = (text: string, ...words: ReadonlyArray<string | RegExp>) => {
  for (const word of words) {
    if (typeof word === "string") assert.include(text, word)
    else assert.match(text, word)
  }
}

/** Looks every 50 ms, 15 s at most. */
export const until = <A, E, R>(look: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  Effect.gen(function*() {
    let value = yield* look
    for (let waited = 0; !holds(value); waited += 50) {
      if (waited > 15_000) return assert.fail(`not within 15 s: ${holds.toString()}, but ${JSON.stringify(value)}`)
      yield* Effect.sleep(50)
      value = yield* look
    }
    return value
  })

/** The status when at least one call has been answered; the machine may be too slow for the acknowledgement to show it. */
export const firstLook = (cli: CliClient, id: string) =>
  until(status(cli, id), ({ structured }) => Number(structured["polls"]) >= 1)
