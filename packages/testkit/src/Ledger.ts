/** JSON as a request carries it. */
export type JsonValue = null | boolean | number | string | ReadonlyArray<JsonValue> | {
  readonly [key: string]: JsonValue
}

/** What a model is paid for: every inference sends the tools and the whole history again. */
export interface Ledger {
  /** one inference: what it was sent is counted, and its answer joins the history */
  readonly inference: (answer: JsonValue) => void
  /** something that joins the history without an inference: a prompt, a tool's result */
  readonly add: (message: JsonValue) => void
  readonly total: () => { readonly inferences: number; readonly tokens: number }
}

/** Counts a token as four characters of the request's JSON; `tools` are the definitions as the model gets them. */
export const makeLedger = (tools: JsonValue): Ledger => {
  const history: Array<JsonValue> = []
  let inferences = 0
  let characters = 0
  return {
    inference: (answer) => {
      inferences += 1
      characters += JSON.stringify({ tools, messages: history }).length
      history.push(answer)
    },
    add: (message) => void history.push(message),
    total: () => ({ inferences, tokens: Math.round(characters / 4) })
  }
}
