/** The version of every package of the project, as MCP peers are told it. */
export const version = "0.1.0"
