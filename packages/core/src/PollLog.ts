import type { KeptValue, Observation } from "./SentinelTask.js"

/** A part of the history, by 0-based index of the poll in the whole history. */
export interface Range {
  /** default: the last `limit` polls */
  readonly offset?: number | undefined
  readonly limit: number
  /** only polls whose outcome differs from the one before */
  readonly changes?: boolean | undefined
}

export interface LogPage {
  readonly entries: ReadonlyArray<Observation>
  readonly offset: number
  /** polls ever appended */
  readonly total: number
  /** the oldest polls that are no longer kept because of the entry limit or the byte limit */
  readonly dropped: { readonly byCount: number; readonly byBytes: number }
}

const entryBytes = 96
const charBytes = 2

const valueBytes = (value: KeptValue | undefined): number => value === undefined ? 0 : value.text.length * charBytes

/**
 * The observations of one task, oldest dropped first. Equal consecutive values share one string, so that a job that says
 * "running" for hours costs one value and a small entry a poll.
 */
export class PollLog {
  readonly #maxEntries: number
  #entries: Array<Observation> = []
  /** index in `#entries` of the oldest kept entry: dropping moves it, and now and then the array is cut */
  #head = 0
  #byCount = 0
  #byBytes = 0
  #bytes = 0

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  /** estimate of the memory that the entries take */
  get bytes(): number {
    return this.#bytes
  }

  /** Appends an observation and gives it back as it is kept. */
  append(observation: Observation): Observation {
    const previous = this.#entries.at(-1)?.value
    const shared = previous !== undefined && observation.value !== undefined &&
      previous.length === observation.value.length && previous.text === observation.value.text
    const kept = shared ? { ...observation, value: previous } : observation
    this.#entries.push(kept)
    this.#bytes += this.#cost(this.#entries.length - 1)
    while (this.#entries.length - this.#head > this.#maxEntries) {
      this.#dropOldest()
      this.#byCount += 1
    }
    return kept
  }

  /** Drops oldest entries until at most `bytes` are used, but keeps the newest one. */
  trimTo(bytes: number): void {
    while (this.#bytes > bytes && this.#entries.length - this.#head > 1) {
      this.#dropOldest()
      this.#byBytes += 1
    }
  }

  page({ changes = false, limit, offset }: Range): LogPage {
    const dropped = this.#byCount + this.#byBytes
    const total = dropped + this.#entries.length - this.#head
    const from = offset ?? (changes ? dropped : Math.max(dropped, total - limit))
    const start = Math.max(from, dropped) - dropped + this.#head
    const entries = changes
      ? this.#changesFrom(start, limit, offset === undefined)
      : this.#entries.slice(start, Math.max(start, from + limit - dropped + this.#head))
    return { entries, offset: from, total, dropped: { byCount: this.#byCount, byBytes: this.#byBytes } }
  }

  #changesFrom(start: number, limit: number, newest: boolean): ReadonlyArray<Observation> {
    const changed = this.#entries.filter((entry, index) => index >= start && this.#differs(entry, index))
    return newest ? changed.slice(-limit) : changed.slice(0, limit)
  }

  #differs(entry: Observation, index: number): boolean {
    const before = index > this.#head ? this.#entries[index - 1] : undefined
    return before === undefined || before.value !== entry.value || before.error !== entry.error
  }

  #cost(index: number): number {
    const value = this.#entries[index]?.value
    const shared = index > this.#head && this.#entries[index - 1]?.value === value
    return entryBytes + (shared ? 0 : valueBytes(value))
  }

  #dropOldest(): void {
    const oldest = this.#entries[this.#head]
    const next = this.#entries[this.#head + 1]
    this.#bytes -= entryBytes + (next?.value === oldest?.value ? 0 : valueBytes(oldest?.value))
    this.#head += 1
    if (this.#head > 512 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    } else {
      this.#entries[this.#head - 1] = dropped
    }
  }
}

const dropped: Observation = { poll: 0, at: 0 }

/**
 * Brings the sum of all logs down to `target` bytes by cutting the largest ones to a common level, so that a chatty task
 * pays for itself and a small log stays whole. Returns the bytes that were freed.
 */
export const trimLargest = (logs: ReadonlyArray<PollLog>, target: number): number => {
  const bySize = logs.map((log) => log.bytes).toSorted((a, b) => b - a)
  const total = bySize.reduce((sum, bytes) => sum + bytes, 0)
  const cut = bySize.reduce(
    (found, bytes, index) => {
      if (found.level >= 0) return found
      const sum = found.sum + bytes
      const level = (target - (total - sum)) / (index + 1)
      return level >= (bySize[index + 1] ?? 0) ? { sum, level } : { sum, level: -1 }
    },
    { sum: 0, level: -1 }
  )
  const level = Math.max(0, cut.level)
  return logs.reduce((freed, log) => {
    const before = log.bytes
    log.trimTo(level)
    return freed + before - log.bytes
  }, 0)
}
