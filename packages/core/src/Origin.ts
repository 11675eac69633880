import type { Json } from "./Json.js"

/** Who asked for a task. Opaque to core: it is stored with the task and given back to the invoker and the notifier. */
export interface Origin {
  /** the host's session, where it tells it: `list` shows a caller its own session's tasks */
  readonly session?: string | undefined
  /** what a durable store may keep to reach the asker again after a restart; never a secret */
  readonly resumable?: Json | undefined
  /** what lives only in this process (an agent object, a token, a client) */
  readonly handle?: unknown
}
