import type { Origin } from "@gcszhn/mcp-sentinel-core/Origin"
import type { ToolContext } from "@opencode-ai/plugin/tool"

/** What opencode hands to a running tool and its types leave out. */
export type CallingContext = ToolContext & { readonly callID?: string | undefined }

/** The tool call that asked for a task; it lives in the origin's handle. */
export class Caller {
  readonly context: CallingContext
  constructor(context: CallingContext) {
    this.context = context
  }
}

export const originOf = (context: CallingContext): Origin => ({
  session: context.sessionID,
  resumable: { session: context.sessionID },
  handle: new Caller(context)
})

export const callerOf = (origin: Origin): CallingContext | undefined =>
  origin.handle instanceof Caller ? origin.handle.context : undefined
