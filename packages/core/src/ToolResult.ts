import type { Json } from "./Json.js"

/** What a condition sees of a call, and what is kept of it (SPEC "The value of a call"). */
export interface ToolValue {
  readonly json: Json
  /** set when the whole text was one bare JSON scalar (`42`, `true`): its second reading, as text */
  readonly text?: string | undefined
  /** the value as text, for logs and reports: JSON where `json` is not a string, else the string itself */
  readonly raw: string
}
