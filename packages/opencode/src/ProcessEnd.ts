import { isMainThread } from "node:worker_threads"

type Signal = "SIGTERM" | "SIGINT" | "SIGHUP"

const signals: ReadonlyArray<Signal> = ["SIGTERM", "SIGINT", "SIGHUP"]

/** ms after which a signal ends the process even if something still closes. */
const graceMillis = 3_000

const open = new Set<() => Promise<void>>()
let watching = false

const closeAll = (): Promise<unknown> =>
  Promise.race([
    Promise.allSettled([...open].map((close) => close())),
    new Promise((resolve) => setTimeout(resolve, graceMillis))
  ])

/**
 * opencode does not dispose its plugins on a signal, and a child of a plugin would go on as an orphan. A listener takes
 * the signal's default away, so the signal is sent again once everything is closed. Under opencode's terminal UI the
 * plugin lives in a worker, which gets no signals.
 */
const watch = () => {
  if (watching || !isMainThread) return
  watching = true
  for (const signal of signals) {
    process.once(signal, () => {
      void closeAll().finally(() => process.kill(process.pid, signal))
    })
  }
}

/** Has `close` called when a signal ends the process, until the returned function is called. */
export const closeWithProcess = (close: () => Promise<void>): () => void => {
  watch()
  open.add(close)
  return () => open.delete(close)
}
