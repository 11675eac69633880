import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { HostBox, Start } from "./HostBox.js"
import { eventually, freePort, makeHostBox, startIn } from "./HostBox.js"
import type { Llm } from "./Llm.js"

const quiet = {
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  OPENCODE_DISABLE_SHARE: "1",
  OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  OPENCODE_DISABLE_CLAUDE_CODE: "1",
  OPENCODE_DISABLE_EXTERNAL_SKILLS: "1",
  OPENCODE_DISABLE_TERMINAL_TITLE: "1",
  OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER: "1"
}

/** opencode installs its plugin SDK into every configuration folder unless it finds it installed. */
const seedFolder = (folder: string, version: string) => {
  const wanted = { dependencies: { "@opencode-ai/plugin": version } }
  mkdirSync(join(folder, "node_modules"), { recursive: true })
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted))
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages: { "": wanted } }))
}

const model = (name: string) => ({ name, tool_call: true, limit: { context: 100_000, output: 4_000 } })

/** A configuration with the scripted model as its only provider: `fake/m1` (the default) and `fake/m2`. */
const baseConfig = (llm: Llm) => ({
  $schema: "https://opencode.ai/config.json",
  model: "fake/m1",
  small_model: "fake/m1",
  autoupdate: false,
  share: "disabled",
  snapshot: false,
  lsp: false,
  formatter: false,
  enabled_providers: ["fake"],
  provider: {
    fake: {
      npm: "@ai-sdk/openai-compatible",
      name: "Fake",
      options: { baseURL: `${llm.origin}/v1`, apiKey: "none" },
      models: {
        m1: { ...model("M1"), variants: { high: { reasoningEffort: "high" } } },
        m2: model("M2")
      }
    }
  },
  permission: { "*": "allow" }
})

export interface OpencodeOptions {
  readonly llm: Llm
  /** joined over the base: `plugin`, `mcp`, `permission`, `agent` … */
  readonly config: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
}

/** A box with an opencode configuration; nothing is started yet. */
export const makeOpencodeBox = Effect.fn("makeOpencodeBox")(function*({ config, env, llm }: OpencodeOptions) {
  const box = yield* makeHostBox("opencode", { ...quiet, ...env })
  seedFolder(join(box.root, "xdg/config/opencode"), "1.18.33")
  writeConfig(box, llm, config)
  return box
})

/** Writes the project's opencode.json anew. */
export const writeConfig = (box: HostBox, llm: Llm, config: Readonly<Record<string, unknown>>) =>
  writeFileSync(join(box.project, "opencode.json"), JSON.stringify({ ...baseConfig(llm), ...config }, null, 2))

const Part = Schema.Struct({
  type: Schema.String,
  text: Schema.optional(Schema.String),
  tool: Schema.optional(Schema.String),
  callID: Schema.optional(Schema.String),
  state: Schema.optional(Schema.Struct({
    status: Schema.String,
    title: Schema.optional(Schema.String),
    output: Schema.optional(Schema.String),
    error: Schema.optional(Schema.String)
  }))
})

const Message = Schema.Struct({
  info: Schema.Struct({
    role: Schema.String,
    agent: Schema.optional(Schema.String),
    mode: Schema.optional(Schema.String),
    modelID: Schema.optional(Schema.String),
    model: Schema.optional(Schema.Struct({ modelID: Schema.String, variant: Schema.optional(Schema.String) }))
  }),
  parts: Schema.Array(Part)
})
export type OpencodeMessage = typeof Message.Type

const Session = Schema.Struct({
  id: Schema.String,
  parentID: Schema.optional(Schema.String),
  agent: Schema.optional(Schema.String),
  model: Schema.optional(Schema.Struct({
    id: Schema.String,
    providerID: Schema.String,
    variant: Schema.optional(Schema.String)
  }))
})
export type OpencodeSession = typeof Session.Type

const Pending = Schema.Array(Schema.Struct({ id: Schema.String, permission: Schema.String, sessionID: Schema.String }))

export interface HttpReply {
  readonly status: number
  readonly body: unknown
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The text that a person reads in a message. */
export const textOf = (message: OpencodeMessage): string =>
  message.parts.flatMap((part) => part.type === "text" ? [part.text ?? ""] : []).join("\n")

/** `opencode serve` as a client sees it. */
export type OpencodeServer = Effect.Effect.Success<ReturnType<typeof serveOpencode>>

/** Starts `opencode serve` in the box and waits until it answers. */
export const serveOpencode = Effect.fn("serveOpencode")(function*(box: HostBox, program: Omit<Start, "stdin">) {
  const port = yield* freePort
  const password = crypto.randomUUID()
  const running = yield* startIn(box, {
    command: program.command,
    args: [
      ...program.args,
      "serve",
      "--hostname",
      "127.0.0.1",
      "--port",
      String(port),
      "--print-logs",
      "--log-level",
      "INFO"
    ],
    env: { ...program.env, OPENCODE_SERVER_PASSWORD: password }
  })
  const headers = {
    "content-type": "application/json",
    authorization: `Basic ${Buffer.from(`opencode:${password}`).toString("base64")}`
  }

  const api = (method: "GET" | "POST" | "DELETE" | "PATCH", path: string, body?: unknown): Effect.Effect<HttpReply> =>
    Effect.promise((signal) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers,
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      }).then(async (reply) => ({ status: reply.status, body: parse(await reply.text()) }))
    )

  const decoded = <A, I>(schema: Schema.Schema<A, I>, reply: Effect.Effect<HttpReply>) =>
    Effect.flatMap(reply, ({ body }) => Schema.decodeUnknown(schema)(body)).pipe(Effect.orDie)

  const healthy = api("GET", "/global/health").pipe(
    Effect.timeoutOption("2 seconds"),
    Effect.map((reply) => Option.isSome(reply) && reply.value.status === 200 ? true as const : undefined),
    Effect.catchAllDefect(() => Effect.succeed(undefined))
  )
  yield* eventually(healthy, "60 seconds", () => `opencode serve did not answer:\n${running.stderr()}`)

  return {
    process: running,
    api,
    toolIds: decoded(Schema.Array(Schema.String), api("GET", "/experimental/tool/ids")),
    createSession: (options: Readonly<Record<string, unknown>> = {}) =>
      decoded(Session, api("POST", "/session", { title: "test", ...options })),
    session: (id: string) => decoded(Session, api("GET", `/session/${id}`)),
    children: (id: string) => decoded(Schema.Array(Session), api("GET", `/session/${id}/children`)),
    messages: (id: string) => decoded(Schema.Array(Message), api("GET", `/session/${id}/message`)),
    /** Sends a user message and waits for the end of the turn. */
    ask: (id: string, text: string, extra: Readonly<Record<string, unknown>> = {}) =>
      decoded(Message, api("POST", `/session/${id}/message`, { parts: [{ type: "text", text }], ...extra })),
    permissions: decoded(Pending, api("GET", "/permission")),
    answerPermission: (id: string, reply: "once" | "always" | "reject") =>
      api("POST", `/permission/${id}/reply`, { reply }),
    dispose: api("POST", "/instance/dispose")
  }
})

/** Runs `opencode run`, the prompt on standard input, and waits for its end. */
export const runOpencode = Effect.fn("runOpencode")(
  function*(box: HostBox, program: Omit<Start, "stdin">, prompt: string) {
    const running = yield* startIn(box, { ...program, args: [...program.args, "run"], stdin: prompt })
    const ended = yield* running.ended
    return { ...ended, stdout: running.stdout(), stderr: running.stderr() }
  }
)
