import { Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import type { CallContext, ToolDefinition, ToolReply } from "@gcszhn/mcp-sentinel-core/ToolKit"
import { ToolKit } from "@gcszhn/mcp-sentinel-core/ToolKit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { auto, NotifierCommands } from "./CommandNotifier.js"

const name = "mcp_sentinel_set_notifier_commands"

const definition: ToolDefinition = {
  name,
  title: "Set notifier commands",
  description:
    `Says which commands are run when a sentinel ends, and returns a notifier_id to pass to mcp_sentinel_poll.
Each command is a template with exactly one {}, where the notice goes as one literal argument. It is split into words by shell quoting rules and run without a shell, one after the other, 30 s each at most. Where a shell is needed, name it, and take the notice as an argument: sh -c 'printf "%s\\n" "$1" >> notices.md' _ {}
Where the host tells which session calls (Codex, Claude Code), this is not needed: pass notifier_id "${auto}" to poll.`,
  inputSchema: {
    type: "object",
    properties: {
      commands: {
        type: "array",
        items: { type: "string", minLength: 1 },
        minItems: 1,
        description: "templates with one {} each, such as: notify-send 'Job ended' {}"
      }
    },
    required: ["commands"],
    additionalProperties: false
  },
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true }
}

const Texts = Schema.NonEmptyArray(Schema.String)
const Input = Schema.Struct({ commands: Schema.Union(Texts, Schema.parseJson(Texts), Schema.NonEmptyString) })

const read = (input: unknown): Effect.Effect<ReadonlyArray<string>, Refused> =>
  Schema.decodeUnknown(Input, { onExcessProperty: "error" })(input).pipe(
    Effect.map(({ commands }) => typeof commands === "string" ? [commands] : commands),
    Effect.mapError(() =>
      new Refused({
        field: "commands",
        message: `${name} takes "commands" and nothing else: a list of at least one text with one {} each, ` +
          `such as ["notify-send 'Job ended' {}"]`
      })
    )
  )

const ready = (templates: ReadonlyArray<string>): string =>
  templates.length === 0 ?
    "" :
    `\n\nReady for this session (the first is what notifier_id "${auto}" runs):\n${
      templates.map((template) => `- \`${template}\``).join("\n")
    }`

const setCommands = (input: unknown, { origin }: CallContext) =>
  Effect.gen(function*() {
    const commands = yield* NotifierCommands
    const { templates } = yield* commands.session(origin)
    return yield* Effect.flatMap(read(input), commands.set).pipe(
      Effect.map((id): ToolReply => ({
        text: `**Notifier:** ${id}\n\nPass notifier_id "${id}" to mcp_sentinel_poll.${ready(templates)}`,
        isError: false,
        structured: { notifier_id: id }
      })),
      Effect.catchAll(({ message }) =>
        Effect.succeed<ToolReply>({ text: `Error: ${message}${ready(templates)}`, isError: true })
      )
    )
  })

/** The shared tools and, as a second toolkit of the CLI, the one that sets notifier commands. */
export const layer = Layer.effect(
  ToolKit,
  Effect.gen(function*() {
    const shared = yield* ToolKit
    const context = yield* Effect.context<NotifierCommands>()
    return {
      tools: [...shared.tools, definition],
      call: (tool: string, input: unknown, call: CallContext) =>
        tool === name ? Effect.provide(setCommands(input, call), context) : shared.call(tool, input, call)
    }
  })
).pipe(Layer.provide(ToolKit.layerWith({ notifierId: true })))
