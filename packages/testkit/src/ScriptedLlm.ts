import * as Schema from "effect/Schema"
import type { Answer, LlmMessage, LlmRequest, Rule, WireFormat } from "./Llm.js"
import { serveLlm, sseEvent } from "./Llm.js"

const Part = Schema.Struct({ type: Schema.String, text: Schema.optional(Schema.String) })
const Body = Schema.Struct({
  model: Schema.String,
  messages: Schema.Array(Schema.Struct({
    role: Schema.Literal("system", "developer", "user", "assistant", "tool"),
    content: Schema.optional(Schema.NullOr(Schema.Union(Schema.String, Schema.Array(Part))))
  })),
  tools: Schema.optional(Schema.Array(Schema.Struct({
    function: Schema.Struct({
      name: Schema.String,
      description: Schema.optional(Schema.String),
      parameters: Schema.Unknown
    })
  })))
})
type Content = typeof Body.Type["messages"][number]["content"]

const textOf = (content: Content): string =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n")

const read: WireFormat["read"] = (raw) => {
  const body = Schema.decodeUnknownSync(Body)(raw)
  return {
    model: body.model,
    tools: (body.tools ?? []).map(({ function: tool }) => ({
      name: tool.name,
      description: tool.description ?? "",
      inputSchema: tool.parameters
    })),
    messages: body.messages.map(({ role, content }): LlmMessage => ({
      role: role === "developer" ? "system" : role,
      text: textOf(content)
    }))
  }
}

const deltaOf = (answer: Exclude<Answer, { _tag: "Fail" }>, id: string) =>
  answer._tag === "Say"
    ? { role: "assistant", content: answer.text }
    : {
      role: "assistant",
      tool_calls: answer.calls.map(({ name, input }, index) => ({
        index,
        id: `call_${id}_${index}`,
        type: "function",
        function: { name, arguments: typeof input === "string" ? input : JSON.stringify(input) }
      }))
    }

const write: WireFormat["write"] = (answer, request: LlmRequest) => {
  const id = crypto.randomUUID().slice(0, 8)
  const base = {
    id: `chatcmpl-${id}`,
    object: "chat.completion.chunk",
    created: Math.floor(request.at / 1000),
    model: request.model
  }
  const finish = answer._tag === "Say" ? "stop" : "tool_calls"
  return [
    sseEvent({ ...base, choices: [{ index: 0, delta: deltaOf(answer, id), finish_reason: null }] }),
    sseEvent({
      ...base,
      choices: [{ index: 0, delta: {}, finish_reason: finish }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    }),
    sseEvent("[DONE]")
  ]
}

/** The Chat Completions API with `stream: true` (OpenAI, and everything compatible with it). */
export const chatCompletions: WireFormat = {
  name: "chat-completions",
  accepts: (path) => path.endsWith("/chat/completions"),
  read,
  write
}

/** A scripted model behind the Chat Completions API; `origin` + `/v1` is its base URL. */
export const scriptedLlm = (rules: ReadonlyArray<Rule>) => serveLlm(chatCompletions, rules)
