/** What came on a stream of newline-delimited frames. */
export type Frame =
  | { readonly _tag: "Line"; readonly text: string }
  /** a frame that was dropped; `head` and `tail` are its first and last bytes as text */
  | { readonly _tag: "TooBig"; readonly bytes: number; readonly head: string; readonly tail: string }

const newline = 10
const edge = 256

/**
 * Splits bytes into lines in linear time. A line over `limit` bytes is dropped while it comes, so that the frames after
 * it are still understood.
 */
export const makeFrameReader = (limit: number, emit: (frame: Frame) => void) => {
  let parts: Array<Buffer> = []
  let bytes = 0
  let head = ""
  let tail: Buffer = Buffer.alloc(0)

  const add = (part: Buffer) => {
    const wasKept = bytes <= limit
    bytes += part.length
    if (wasKept) parts.push(part)
    if (bytes <= limit) return
    if (wasKept) {
      const kept = Buffer.concat(parts)
      head = kept.toString("utf8", 0, edge)
      tail = kept.subarray(-edge)
      parts = []
    } else tail = Buffer.concat([tail, part]).subarray(-edge)
  }

  const finish = () => {
    if (bytes > limit) emit({ _tag: "TooBig", bytes, head, tail: tail.toString("utf8") })
    else emit({ _tag: "Line", text: Buffer.concat(parts).toString("utf8") })
    parts = []
    bytes = 0
    head = ""
    tail = Buffer.alloc(0)
  }

  return (chunk: Buffer) => {
    let from = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      add(chunk.subarray(from, at))
      finish()
      from = at + 1
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
}

/** The id of the reply that a dropped frame held: serialisers put it first or last. */
export const replyIdOf = (frame: { readonly head: string; readonly tail: string }): number | undefined => {
  const id = /"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(frame.tail)?.[1] ??
    /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,/.exec(frame.head)?.[1]
  return id === undefined ? undefined : Number(id)
}
