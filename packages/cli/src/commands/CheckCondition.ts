import { compile, judge } from "@gcszhn/mcp-sentinel-core/Condition"
import { fromText } from "@gcszhn/mcp-sentinel-core/ToolResult"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { text } from "node:stream/consumers"
import { jsonArgument } from "./jsonArgument.js"

const verdicts = { Holds: "holds", DoesNotHold: "does not hold", Undecided: "undecided" } as const

/**
 * `mcp-sentinel check-condition`: judges a sample from stdin, taken as the text of a tool's result. Exit code 0 when the
 * condition holds, 1 when not, 2 when the condition is wrong.
 */
export const checkCondition = Effect.fnUntraced(
  function*(condition: string, json: boolean, stdin: NodeJS.ReadableStream) {
    const compiled = Either.flatMap(jsonArgument("condition", condition), (source) => compile(source, "condition"))
    if (Either.isLeft(compiled)) {
      yield* Console.error(`Error: ${compiled.left.message}`)
      return 2
    }
    const sample = yield* Effect.promise(() => text(stdin))
    const verdict = judge(compiled.right, fromText(sample.trim()))
    yield* Console.log(
      json
        ? JSON.stringify({ verdict: verdicts[verdict._tag], reason: verdict.reason })
        : `${verdicts[verdict._tag]}: ${verdict.reason}`
    )
    return verdict._tag === "Holds" ? 0 : 1
  }
)
