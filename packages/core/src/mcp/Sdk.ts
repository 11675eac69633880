import { unknown } from "zod"

/** What a connection needs of the MCP SDK, as one module that is loaded with the first connection. */
export { Client } from "@modelcontextprotocol/sdk/client/index.js"
export { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"

/** Accepts any result: what a server answers is judged here, not by its schema. */
export const anything = unknown()
