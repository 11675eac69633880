import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { HostBox, Start } from "./HostBox.js"
import { eventually, makeHostBox, startIn } from "./HostBox.js"
import { type Llm, type Rule, serveLlm } from "./Llm.js"
import { chatCompletions } from "./ScriptedLlm.js"

/** A program with the arguments that come before the caller's own. */
export type Program = Pick<Start, "command" | "args">

export interface DshOptions {
  readonly llm: Llm
  /** dsh itself, on a Node that it supports */
  readonly dsh: Program
  /** what `dsh plugin` installs with; it looks for `pnpm` on PATH */
  readonly pnpm: Program
  readonly env?: Readonly<Record<string, string>>
}

/** A box with a dsh home, wired to the scripted model. */
export interface DshBox extends HostBox {
  readonly dsh: Program
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const writeProgram = (file: string, { args, command }: Program) => {
  writeFileSync(file, `#!/bin/sh\nexec ${[command, ...args].map(quoted).join(" ")} "$@"\n`)
  chmodSync(file, 0o755)
}

/** A box in which dsh finds a home of its own, the scripted model, and pnpm; nothing is started yet. */
export const makeDshBox = Effect.fn("makeDshBox")(function*({ dsh, env, llm, pnpm }: DshOptions) {
  const box = yield* makeHostBox("dsh")
  const bin = join(box.root, "bin")
  mkdirSync(bin)
  writeProgram(join(bin, "pnpm"), pnpm)
  const made: DshBox = {
    ...box,
    dsh,
    env: {
      ...box.env,
      PATH: `${bin}:${box.env.PATH}`,
      DSH_HOME: box.home,
      DEEPSEEK_BASE_URL: `${llm.origin}/v1`,
      DEEPSEEK_API_KEY: "fake",
      DSH_TELEMETRY_DISABLED: "1",
      NO_COLOR: "1",
      ...env
    }
  }
  return made
})

/** Runs dsh to its end. */
export const runDsh = Effect.fn("runDsh")(function*(box: DshBox, ...args: ReadonlyArray<string>) {
  const running = yield* startIn(box, { command: box.dsh.command, args: [...box.dsh.args, ...args] })
  const ended = yield* running.ended
  return { ...ended, stdout: running.stdout(), stderr: running.stderr() }
})

const profileFolder = (box: DshBox, profile: string) => join(box.home, "profiles", profile)

/** One rule of a profile's own patch layer: what it inserts, or what it changes of a row that a bundle inserted. */
export type PatchRule = Readonly<Record<string, unknown>>

/** Writes the profile's own patch layer. dsh reads it at start, and applies changes while it runs. JSON is YAML. */
export const writePatch = (box: DshBox, profile: string, rules: ReadonlyArray<PatchRule>) => {
  mkdirSync(profileFolder(box, profile), { recursive: true })
  writeFileSync(join(profileFolder(box, profile), "cordis.patch.yml"), JSON.stringify(rules, null, 2))
}

/** The names of a profile's bundles, as `dsh plugin` keeps them. */
export const bundlesOf = (box: DshBox, profile: string): ReadonlyArray<string> => {
  const file = join(profileFolder(box, profile), "package.json")
  if (!existsSync(file)) return []
  return Schema.decodeUnknownSync(ProfileManifest)(JSON.parse(readFileSync(file, "utf8"))).dsh.profile.bundles
}

const ProfileManifest = Schema.Struct({
  dsh: Schema.Struct({ profile: Schema.Struct({ bundles: Schema.Array(Schema.String) }) })
})

const Reply = Schema.Struct({
  result: Schema.Struct({ ok: Schema.Boolean, value: Schema.optional(Schema.Unknown) })
})
const Created = Schema.Struct({ sessionId: Schema.String })
const History = Schema.Struct({
  events: Schema.Array(Schema.Struct({ event: Schema.Struct({ type: Schema.String, data: Schema.Unknown }) }))
})

/** What happened in a session, as dsh's web client would learn it. */
export type DshEvent = typeof History.Type["events"][number]["event"]

/** `dsh --profile web` as its web client sees it. */
export type DshWeb = Effect.Effect.Success<ReturnType<typeof serveDsh>>

/** Starts the web profile on a free port and waits until it says where. */
export const serveDsh = Effect.fn("serveDsh")(function*(box: DshBox) {
  const running = yield* startIn(box, {
    command: box.dsh.command,
    args: [...box.dsh.args, "--profile", "web", "--no-open", "--port", "0"]
  })
  const url = yield* eventually(
    Effect.sync(() => /http:\/\/127\.0\.0\.1:\d+/.exec(running.stdout())?.[0]),
    "60 seconds",
    () => `dsh did not start:\n${running.stdout()}\n${running.stderr()}`
  )

  const rpc = <A, I>(schema: Schema.Schema<A, I>, method: string, payload: Readonly<Record<string, unknown>>) =>
    Effect.promise((signal) =>
      fetch(`${url}/api/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ type: "client-request", rpcId: crypto.randomUUID(), method, payload }),
        signal
      }).then((reply) => reply.json())
    ).pipe(
      Effect.flatMap(Schema.decodeUnknown(Reply)),
      Effect.flatMap(({ result }) => Schema.decodeUnknown(schema)(result.value)),
      Effect.orDie
    )

  return {
    process: running,
    createSession: Effect.map(rpc(Created, "session.create", { cwd: box.project }), ({ sessionId }) => sessionId),
    /** Queues a user message; it does not wait for the turn. */
    prompt: (sessionId: string, text: string) =>
      rpc(Schema.Unknown, "session.prompt", { sessionId, mode: "queue", content: [{ type: "text", text }] }),
    /** What the Stop button does. */
    cancel: (sessionId: string) => rpc(Schema.Unknown, "session.cancel", { sessionId }),
    history: (sessionId: string) =>
      Effect.map(
        rpc(History, "session.history", { sessionId, maxMessages: 100 }),
        ({ events }) => events.map(({ event }): DshEvent => event)
      )
  }
})

/** dsh adds what it knows of its surroundings as messages of the user; a script reacts to what the user said. */
const isContext = (text: string) => text.startsWith("Current runtime context.")

/** A scripted model that does not see dsh's own context messages. */
export const dshLlm = (rules: ReadonlyArray<Rule>) =>
  serveLlm({
    ...chatCompletions,
    read: (body) => {
      const prompt = chatCompletions.read(body)
      return { ...prompt, messages: prompt.messages.filter(({ role, text }) => role !== "user" || !isContext(text)) }
    }
  }, rules)
