import { type Catalogue, McpServers, type ServerConfig } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import Table from "cli-table3"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"

/** What a person may see of an endpoint: never arguments, environment, headers, or the credentials of a URL. */
const publicEndpoint = ({ endpoint }: ServerConfig): string => {
  if (endpoint._tag === "stdio") return endpoint.args.length === 0 ? endpoint.command : `${endpoint.command} …`
  const url = new URL(endpoint.url)
  return `${url.origin}${url.pathname}`
}

const transport = ({ endpoint }: ServerConfig): string => endpoint._tag === "stdio" ? "stdio" : endpoint.transport

const asJson = ({ problems, servers, unusable }: Catalogue) => ({
  servers: servers.map((server) => ({
    name: server.name,
    transport: transport(server),
    endpoint: publicEndpoint(server),
    source: server.source
  })),
  skipped: unusable,
  problems
})

const plain = { style: { head: [], border: [], compact: true } }

const asTable = ({ problems, servers, unusable }: Catalogue): string => {
  const found = new Table({ ...plain, head: ["server", "transport", "endpoint", "from"] })
  found.push(...servers.map((server) => [server.name, transport(server), publicEndpoint(server), server.source]))
  return [
    ...(servers.length === 0 ? ["No usable server was found."] : [found.toString()]),
    ...unusable.map(({ name, reason }) => `Skipped ${name}: ${reason}`),
    ...problems.map((problem) => `Problem: ${problem}`)
  ].join("\n")
}

/** `mcp-sentinel servers`: what was found, from where, and what is skipped and why. Exit code 1 on any problem. */
export const servers = Effect.fnUntraced(function*(json: boolean) {
  const catalogue = yield* Effect.flatMap(McpServers, ({ catalogue }) => catalogue)
  yield* Console.log(json ? JSON.stringify(asJson(catalogue), null, 2) : asTable(catalogue))
  return catalogue.problems.length === 0 ? 0 : 1
})
