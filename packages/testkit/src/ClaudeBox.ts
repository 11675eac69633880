import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { HostBox, Start } from "./HostBox.js"
import { makeHostBox, startIn } from "./HostBox.js"
import type { Llm, Rule } from "./Llm.js"
import { serveLlm } from "./Llm.js"
import { messages } from "./ScriptedMessages.js"

const quiet = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_TELEMETRY: "1",
  DISABLE_ERROR_REPORTING: "1"
}

/** A server of Claude Code's configuration. */
export type ClaudeServer = Readonly<Record<string, unknown>>

export interface ClaudeServers {
  /** the user's own servers, in `~/.claude.json` */
  readonly user?: Readonly<Record<string, ClaudeServer>>
  /** the project's servers, in `.mcp.json` */
  readonly project?: Readonly<Record<string, ClaudeServer>>
}

export interface ClaudeOptions {
  readonly llm: Llm
  readonly env?: Readonly<Record<string, string>>
}

/** A box with the scripted model in place of the vendor's; nothing is started yet. */
export const makeClaudeBox = Effect.fn("makeClaudeBox")(function*({ env, llm }: ClaudeOptions) {
  const box = yield* makeHostBox("claude", {
    ...quiet,
    ANTHROPIC_BASE_URL: llm.origin,
    ANTHROPIC_API_KEY: "sk-fake",
    ...env
  })
  writeClaudeServers(box, {})
  return box
})

/** Writes Claude Code's files anew. */
export const writeClaudeServers = (box: HostBox, { project = {}, user = {} }: ClaudeServers) => {
  writeFileSync(join(box.home, ".claude.json"), JSON.stringify({ hasCompletedOnboarding: true, mcpServers: user }))
  writeFileSync(join(box.project, ".mcp.json"), JSON.stringify({ mcpServers: project }))
}

/** Starts `claude -p`, which ends with the agent's turn; every message comes as a line of JSON on standard output. */
export const startClaudePrint = (box: HostBox, program: Start, ...args: ReadonlyArray<string>) =>
  startIn(box, {
    ...program,
    args: [...program.args, "-p", "--output-format", "stream-json", "--verbose", ...args]
  })

const Init = Schema.parseJson(Schema.Struct({ type: Schema.Literal("system"), session_id: Schema.String }))

/** The session that `claude -p` says it runs. */
export const sessionOf = (stdout: string): string | undefined =>
  stdout.split("\n").flatMap((line) => Option.toArray(Schema.decodeUnknownOption(Init)(line)))[0]?.session_id

/** Claude Code adds what it knows of its surroundings to the user's messages; a script reacts to what the user said. */
const withoutReminders = (text: string) => text.replaceAll(/<system-reminder>[^]*?<\/system-reminder>\n?/g, "").trim()

/** A scripted model that does not see Claude Code's own reminders. */
export const claudeLlm = (rules: ReadonlyArray<Rule>) =>
  serveLlm({
    ...messages,
    read: (body) => {
      const prompt = messages.read(body)
      const said = prompt.messages.map((message) =>
        message.role === "user" ? { ...message, text: withoutReminders(message.text) } : message
      )
      return { ...prompt, messages: said.filter(({ role, text }) => role !== "user" || text !== "") }
    }
  }, rules)
