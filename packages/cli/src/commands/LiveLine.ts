import * as Effect from "effect/Effect"
import { clearLine, cursorTo } from "node:readline"
import type { WriteStream } from "node:tty"

/** A line about a wait, on stderr: replaced in place on a terminal, one after the other elsewhere. */
export interface LiveLine {
  readonly isTerminal: boolean
  readonly show: (text: string) => Effect.Effect<void>
  readonly clear: Effect.Effect<void>
}

export const liveLine = (stream: WriteStream): LiveLine => {
  const isTerminal = stream.isTTY === true
  const clear = Effect.sync(() => {
    if (!isTerminal) return
    clearLine(stream, 0)
    cursorTo(stream, 0)
  })
  return {
    isTerminal,
    clear,
    show: (text) =>
      Effect.zipRight(
        clear,
        Effect.sync(() => {
          stream.write(isTerminal ? [...text].slice(0, Math.max(10, (stream.columns || 80) - 1)).join("") : `${text}\n`)
        })
      )
  }
}
