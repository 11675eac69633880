/** The plugin as dsh loads it. The tests run its sources (see `vitest.config.ts`), on the dsh packages of this folder. */
declare module "@gcszhn/mcp-sentinel-deepseek-harness-plugin" {
  import type { Context } from "@deepseek-ai/cordis"

  export const name: string
  export const inject: Array<string>
  export const apply: (ctx: Context, config: { readonly jobs?: boolean } | null | undefined) => Promise<void>
}
