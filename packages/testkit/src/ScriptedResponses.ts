import * as Schema from "effect/Schema"
import type { Answer, LlmCall, LlmMessage, LlmRequest, LlmTool, Rule, WireFormat } from "./Llm.js"
import { serveLlm, sseEvent } from "./Llm.js"

const Tool = Schema.Struct({
  type: Schema.String,
  name: Schema.optional(Schema.String),
  description: Schema.optional(Schema.NullOr(Schema.String)),
  parameters: Schema.optional(Schema.Unknown)
})
type Tool = typeof Tool.Type

const Namespace = Schema.Struct({
  type: Schema.Literal("namespace"),
  name: Schema.String,
  tools: Schema.Array(Tool)
})

const Part = Schema.Struct({ type: Schema.String, text: Schema.optional(Schema.String) })
const Text = Schema.Union(Schema.String, Schema.Array(Part))
const Message = Schema.Struct({
  type: Schema.Literal("message"),
  role: Schema.Literal("system", "developer", "user", "assistant"),
  content: Text
})
const Output = Schema.Struct({
  type: Schema.Literal("function_call_output", "custom_tool_call_output"),
  output: Text
})
const Other = Schema.Struct({ type: Schema.String })

const Body = Schema.Struct({
  model: Schema.String,
  instructions: Schema.optional(Schema.NullOr(Schema.String)),
  input: Schema.Array(Schema.Union(Message, Output, Other)),
  tools: Schema.optional(Schema.Array(Schema.Union(Namespace, Tool)))
})
type Body = typeof Body.Type

const decode = Schema.decodeUnknownSync(Body)

/** A function of a namespace, under the one name that other APIs give it. */
interface Named {
  readonly flat: string
  readonly namespace?: string
  readonly tool: Tool
}

const namedTools = ({ tools = [] }: Body): ReadonlyArray<Named> =>
  tools.flatMap((tool): ReadonlyArray<Named> =>
    "tools" in tool
      ? tool.tools.map((inner) => ({
        flat: `${tool.name}__${inner.name ?? inner.type}`,
        namespace: tool.name,
        tool: inner
      }))
      : [{ flat: tool.name ?? tool.type, tool }]
  )

const toTool = ({ flat, tool }: Named): LlmTool => ({
  name: flat,
  description: tool.description ?? "",
  inputSchema: tool.parameters
})

const textOf = (text: typeof Text.Type): string =>
  typeof text === "string" ? text : text.map((part) => part.text ?? "").join("\n")

const toMessage = (item: Body["input"][number]): ReadonlyArray<LlmMessage> => {
  if ("output" in item) return [{ role: "tool", text: textOf(item.output) }]
  if (!("role" in item)) return []
  return [{ role: item.role === "developer" ? "system" : item.role, text: textOf(item.content) }]
}

const read: WireFormat["read"] = (raw) => {
  const body = decode(raw)
  const instructions: ReadonlyArray<LlmMessage> = body.instructions ? [{ role: "system", text: body.instructions }] : []
  return {
    model: body.model,
    tools: namedTools(body).map(toTool),
    messages: [...instructions, ...body.input.flatMap(toMessage)]
  }
}

const callItem = (known: ReadonlyArray<Named>, { input, name }: LlmCall, id: string) => {
  const found = known.find(({ flat }) => flat === name)
  return {
    type: "function_call",
    id: `fc_${id}`,
    call_id: `call_${id}`,
    name: found?.tool.name ?? name,
    ...(found?.namespace === undefined ? {} : { namespace: found.namespace }),
    arguments: typeof input === "string" ? input : JSON.stringify(input)
  }
}

const itemsOf = (answer: Exclude<Answer, { _tag: "Fail" }>, request: LlmRequest, id: string) => {
  if (answer._tag === "Say") {
    const content = [{ type: "output_text", text: answer.text, annotations: [] }]
    return [{ type: "message", id: `msg_${id}`, role: "assistant", status: "completed", content }]
  }
  const known = namedTools(decode(request.body))
  return answer.calls.map((call, index) => callItem(known, call, `${id}_${index}`))
}

const write: WireFormat["write"] = (answer, request) => {
  const id = crypto.randomUUID().slice(0, 8)
  const items = itemsOf(answer, request, id)
  const response = { id: `resp_${id}`, object: "response", model: request.model }
  const usage = {
    input_tokens: 10,
    input_tokens_details: null,
    output_tokens: 5,
    output_tokens_details: null,
    total_tokens: 15
  }
  const event = (type: string, data: Readonly<Record<string, unknown>>) => sseEvent({ type, ...data }, type)
  return [
    event("response.created", { response: { ...response, status: "in_progress" } }),
    ...items.map((item, index) => event("response.output_item.done", { output_index: index, item })),
    event("response.completed", { response: { ...response, status: "completed", output: items, usage } })
  ]
}

/**
 * The Responses API with `stream: true`, as Codex speaks it. A function of a namespace is shown to scripts as
 * `namespace__function`, and a call of that name goes out with the namespace apart.
 */
export const responses: WireFormat = {
  name: "responses",
  accepts: (path) => path.endsWith("/responses"),
  read,
  write,
  other: (path) => path.endsWith("/models") ? { object: "list", data: [], models: [] } : undefined
}

/** A scripted model behind the Responses API; `origin` + `/v1` is its base URL. */
export const scriptedResponses = (rules: ReadonlyArray<Rule>) => serveLlm(responses, rules)
