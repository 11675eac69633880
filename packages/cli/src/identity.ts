import { version } from "@gcszhn/mcp-sentinel-core/version"

export const serverInfo = { name: "mcp-sentinel", version }

export const capabilities = { tools: {} }

export const instructions =
  "Start a long job with its own tool, then call mcp_sentinel_poll once on the tool that tells its status, and mcp_sentinel_attach to wait. Never call a status tool in a loop."
