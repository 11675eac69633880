import { Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Nobody is told: outcomes are collected by attach. */
export const NoNotifier = Layer.succeed(Notifier, {
  accept: () =>
    Effect.succeed({
      notifies: false,
      advice:
        "Nobody will be told when this ends: call mcp_sentinel_attach with this ID before you end your turn. The wait ends with this process."
    }),
  notify: () => Effect.void
})
