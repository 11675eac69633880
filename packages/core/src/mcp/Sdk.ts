/** What a connection needs of the MCP SDK, as one module that is loaded with the first connection. */
export { Client } from "@modelcontextprotocol/sdk/client/index.js"
export { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
export { unknown as anything } from "zod"
