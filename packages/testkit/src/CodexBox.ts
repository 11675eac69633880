import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { stringify } from "smol-toml"
import type { HostBox, Start } from "./HostBox.js"
import { eventually, makeHostBox, processesWith, startIn } from "./HostBox.js"
import type { Llm } from "./Llm.js"

/** A box with a CODEX_HOME that is not the default one. */
export interface CodexBox extends HostBox {
  readonly codexHome: string
}

/** A server of Codex's configuration, in the words of config.toml. */
export type CodexServer = Readonly<Record<string, unknown>>

export interface CodexOptions {
  readonly llm: Llm
  readonly servers?: Readonly<Record<string, CodexServer>>
  readonly env?: Readonly<Record<string, string>>
}

/** Codex passes nothing of its own environment on but a few names, so that HOME marks what runs in the box. */
export const processesInCodex = (box: CodexBox) => processesWith(`HOME=${box.home}`)

/** A box with a Codex configuration and the scripted model as its provider; nothing is started yet. */
export const makeCodexBox = Effect.fn("makeCodexBox")(function*({ env, llm, servers = {} }: CodexOptions) {
  const box = yield* makeHostBox("codex", { FAKE_KEY: "none", ...env })
  const codexHome = join(box.root, "codex-home")
  mkdirSync(codexHome)
  const made: CodexBox = { ...box, codexHome, env: { ...box.env, CODEX_HOME: codexHome } }
  writeCodexConfig(made, llm, servers)
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(
      processesInCodex(made),
      Effect.forEach(({ pid }) => Effect.ignore(Effect.try(() => process.kill(pid, "SIGKILL"))))
    )
  )
  return made
})

const base = ({ origin }: Llm) => ({
  model: "fake-model",
  model_provider: "fake",
  check_for_update_on_startup: false,
  analytics: { enabled: false },
  model_providers: {
    fake: {
      name: "fake",
      base_url: `${origin}/v1`,
      wire_api: "responses",
      env_key: "FAKE_KEY",
      request_max_retries: 0,
      stream_max_retries: 0
    }
  }
})

/** Writes `$CODEX_HOME/config.toml` anew. */
export const writeCodexConfig = (box: CodexBox, llm: Llm, servers: Readonly<Record<string, CodexServer>>) =>
  writeFileSync(join(box.codexHome, "config.toml"), stringify({ ...base(llm), mcp_servers: servers }))

/** Starts `codex exec`, which ends with the agent's turn; events come as lines of JSON on standard output. */
export const startCodexExec = (box: CodexBox, program: Omit<Start, "stdin">, ...args: ReadonlyArray<string>) =>
  startIn(box, { ...program, args: [...program.args, "exec", "--json", "--skip-git-repo-check", ...args] })

const Started = Schema.parseJson(Schema.Struct({ type: Schema.Literal("thread.started"), thread_id: Schema.String }))

/** The thread that `codex exec --json` says it runs. */
export const threadOf = (stdout: string): string | undefined =>
  stdout.split("\n").flatMap((line) => Option.toArray(Schema.decodeUnknownOption(Started)(line)))[0]?.thread_id

const Message = Schema.parseJson(Schema.Struct({
  id: Schema.optional(Schema.Union(Schema.String, Schema.Number)),
  method: Schema.optional(Schema.String),
  params: Schema.optional(Schema.Unknown),
  result: Schema.optional(Schema.Unknown),
  error: Schema.optional(Schema.Unknown)
}))

const Thread = Schema.Struct({ thread: Schema.Struct({ id: Schema.String }) })

/** Starts `codex app-server`, which keeps its threads open between turns, as an editor or the terminal does. */
export const serveCodex = Effect.fn("serveCodex")(function*(box: CodexBox, program: Omit<Start, "stdin">) {
  const running = yield* startIn(box, { ...program, args: [...program.args, "app-server"], talks: true })
  const received = () =>
    running.stdout().split("\n").flatMap((line) => Option.toArray(Schema.decodeUnknownOption(Message)(line)))
  let requests = 0

  const request = Effect.fnUntraced(function*(method: string, params: unknown) {
    const id = ++requests
    yield* running.write(`${JSON.stringify({ id, method, params })}\n`)
    const reply = yield* eventually(
      Effect.sync(() => received().find((message) => message.id === id && message.method === undefined)),
      "60 seconds",
      () => `codex app-server did not answer ${method}:\n${running.stderr()}`
    )
    return reply.result ?? reply.error
  })

  yield* request("initialize", { clientInfo: { name: "testkit", title: "testkit", version: "1.0.0" } })
  yield* running.write(`${JSON.stringify({ method: "initialized" })}\n`)
  return {
    process: running,
    /** Opens a thread in the box's project, and gives its id. */
    startThread: Effect.flatMap(request("thread/start", { cwd: box.project }), Schema.decodeUnknown(Thread)).pipe(
      Effect.map(({ thread }) => thread.id)
    ),
    /** Sends a user message; it does not wait for the turn. */
    startTurn: (threadId: string, text: string) => request("turn/start", { threadId, input: [{ type: "text", text }] }),
    /** the names of the notifications so far */
    notifications: () =>
      received().flatMap(({ id, method }) => id === undefined && method !== undefined ? [method] : [])
  }
})
