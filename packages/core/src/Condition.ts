import type * as Either from "effect/Either"
import type { Json } from "./Json.js"
import type { ToolValue } from "./ToolResult.js"

/** A condition whose static checks all passed. `source` is the declaration it came from. */
export interface Compiled {
  readonly source: Json
}

export type Verdict = {
  readonly _tag: "Holds" | "DoesNotHold" | "Undecided"
  /** why, in one clause: `status is "running"`, `path "stauts" not found; keys there: status, progress` */
  readonly reason: string
}
export declare const compile: (input: unknown, field: string) => Either.Either<Compiled, import("./Errors.js").Refused>
export declare const judge: (condition: Compiled, value: ToolValue) => Verdict
