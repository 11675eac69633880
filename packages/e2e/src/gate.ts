import * as Effect from "effect/Effect"
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"

export interface Gate {
  readonly url: string
  /** requests that came without the headers */
  readonly refused: () => number
}

const pass = (to: URL, from: IncomingMessage, reply: ServerResponse) => {
  const onward = request(to, { method: from.method, headers: { ...from.headers, host: to.host } }, (answer) => {
    reply.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(reply)
  })
  onward.on("error", () => reply.destroy())
  reply.on("close", () => onward.destroy())
  from.pipe(onward)
}

/** A door before an HTTP server that opens to requests with these headers only; others get 401. */
export const gateBefore = (url: string, headers: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.async<{ readonly gate: Gate; readonly close: () => void }>((resume) => {
      let refused = 0
      const knows = (from: IncomingMessage) =>
        Object.entries(headers).every(([name, value]) => from.headers[name.toLowerCase()] === value)
      const server = createServer((from, reply) => {
        if (knows(from)) return pass(new URL(url), from, reply)
        refused += 1
        reply.writeHead(401, { "www-authenticate": "Bearer" }).end()
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const gate = { url: `http://127.0.0.1:${port}/mcp`, refused: () => refused }
        resume(Effect.succeed({
          gate,
          close: () => {
            server.close()
            server.closeAllConnections()
          }
        }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ gate }) => gate))
