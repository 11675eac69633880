import * as Schema from "effect/Schema"
import type { Answer, LlmCall, LlmMessage, Rule, WireFormat } from "./Llm.js"
import { serveLlm, sseEvent } from "./Llm.js"

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const OtherBlock = Schema.Struct({ type: Schema.String })
const ToolResult = Schema.Struct({
  type: Schema.Literal("tool_result"),
  content: Schema.optional(Schema.Union(Schema.String, Schema.Array(Schema.Union(TextBlock, OtherBlock))))
})
const Content = Schema.Union(Schema.String, Schema.Array(Schema.Union(TextBlock, ToolResult, OtherBlock)))
const Message = Schema.Struct({ role: Schema.Literal("system", "user", "assistant"), content: Content })
type Message = typeof Message.Type

const Body = Schema.Struct({
  model: Schema.String,
  system: Schema.optional(Content),
  messages: Schema.Array(Message),
  tools: Schema.optional(Schema.Array(Schema.Struct({
    name: Schema.String,
    description: Schema.optional(Schema.String),
    input_schema: Schema.optional(Schema.Unknown)
  })))
})

const decode = Schema.decodeUnknownSync(Body)

type Block = Exclude<typeof Content.Type, string>[number]

const blocksOf = (content: typeof Content.Type): ReadonlyArray<Block> =>
  typeof content === "string" ? [{ type: "text", text: content }] : content

const textOf = (content: typeof Content.Type): string =>
  blocksOf(content).flatMap((block) => "text" in block ? [block.text] : []).join("\n")

/** One message on the wire may hold results of tools and words of the user; scripts see them apart. */
const toMessages = ({ content, role }: Message): ReadonlyArray<LlmMessage> => {
  const results = blocksOf(content).flatMap((block): ReadonlyArray<LlmMessage> =>
    block.type === "tool_result" ? [{ role: "tool", text: "content" in block ? textOf(block.content ?? "") : "" }] : []
  )
  const text = textOf(content)
  return text === "" && results.length > 0 ? results : [...results, { role, text }]
}

const read: WireFormat["read"] = (raw) => {
  const body = decode(raw)
  const { system = "" } = body
  return {
    model: body.model,
    tools: (body.tools ?? []).map(({ description = "", input_schema, name }) => ({
      name,
      description,
      inputSchema: input_schema
    })),
    messages: [{ role: "system", text: textOf(system) }, ...body.messages.flatMap(toMessages)]
  }
}

const callBlock = ({ input, name }: LlmCall, id: string) => ({
  start: { type: "tool_use", id: `toolu_${id}`, name, input: {} },
  delta: { type: "input_json_delta", partial_json: typeof input === "string" ? input : JSON.stringify(input) }
})

const blocksFor = (answer: Exclude<Answer, { _tag: "Fail" }>, id: string) =>
  answer._tag === "Say"
    ? [{ start: { type: "text", text: "" }, delta: { type: "text_delta", text: answer.text } }]
    : answer.calls.map((call, index) => callBlock(call, `${id}_${index}`))

const write: WireFormat["write"] = (answer, { model }) => {
  const id = crypto.randomUUID().replaceAll("-", "")
  const event = (type: string, data: Readonly<Record<string, unknown>>) => sseEvent({ type, ...data }, type)
  const message = {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 }
  }
  return [
    event("message_start", { message }),
    ...blocksFor(answer, id).flatMap(({ delta, start }, index) => [
      event("content_block_start", { index, content_block: start }),
      event("content_block_delta", { index, delta }),
      event("content_block_stop", { index })
    ]),
    event("message_delta", {
      delta: { stop_reason: answer._tag === "Say" ? "end_turn" : "tool_use", stop_sequence: null },
      usage: { output_tokens: 5 }
    }),
    event("message_stop", {})
  ]
}

/** The Messages API with `stream: true`, as Claude Code speaks it. */
export const messages: WireFormat = {
  name: "messages",
  accepts: (path) => path.endsWith("/v1/messages"),
  read,
  write,
  other: (path) => path.endsWith("/count_tokens") ? { input_tokens: 10 } : path === "/" ? {} : undefined
}

/** A scripted model behind the Messages API; `origin` is its base URL. */
export const scriptedMessages = (rules: ReadonlyArray<Rule>) => serveLlm(messages, rules)
