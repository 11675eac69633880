import { SSEClientTransport, SseError } from "@modelcontextprotocol/sdk/client/sse.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import { frameTooBig, type HttpAnswer, HttpFailure, noReply } from "./Mishap.js"
import type { HttpServer } from "./ServerConfig.js"
import { frameLimit } from "./StdioTransport.js"

const bodyKept = 2_000

const answerOf = async (response: Response): Promise<HttpAnswer> => ({
  status: response.status,
  contentType: response.headers.get("content-type") ?? undefined,
  body: (await response.text().catch(() => "")).slice(0, bodyKept),
  retryAfter: response.headers.get("retry-after") ?? undefined,
  wwwAuthenticate: response.headers.get("www-authenticate") ?? undefined
})

const isHtml = (response: Response) => /^text\/html\b/i.test(response.headers.get("content-type") ?? "")

/** Redirects are left to the SDK, which follows them within the origin only. */
const isRedirect = (response: Response) => response.status >= 300 && response.status < 400

/** Fails with the whole answer where the SDK would keep its status only. */
const checked = async (response: Response): Promise<Response> => {
  if (isRedirect(response) || (response.ok && !isHtml(response))) return response
  throw new HttpFailure(await answerOf(response))
}

const idOf = (init: RequestInit | undefined): number | string | undefined => {
  if (typeof init?.body !== "string") return undefined
  const message: unknown = JSON.parse(init.body)
  if (typeof message !== "object" || message === null || !("id" in message) || !("method" in message)) return undefined
  return typeof message.id === "number" || typeof message.id === "string" ? message.id : undefined
}

/** A session is given back within 1 s or not at all. */
const goodbye = () => AbortSignal.timeout(1_000)

/** ms for the messages of a stream that has ended to be read by the SDK */
const readGrace = 50

/** A request without an answer. */
interface Waiting {
  /** the server has given event ids, with which the SDK asks for the rest of an ended stream */
  resumable: boolean
  ended: boolean
}

/**
 * Streamable HTTP of the SDK, with what polling needs: a failing answer keeps its headers, a stream that ends without
 * the answer fails the call at once instead of at its timeout, and an answer over the frame limit fails clearly.
 */
export class StreamableTransport extends StreamableHTTPClientTransport {
  private readonly waiting = new Map<number | string, Waiting>()

  constructor(server: HttpServer, limit: number = frameLimit) {
    super(new URL(server.url), {
      requestInit: { headers: { ...server.headers } },
      fetch: async (url, init) => {
        if (init?.method === "DELETE") return fetch(url, { ...init, signal: goodbye() })
        if (init?.method === "POST") return this.watched(await checked(await fetch(url, init)), idOf(init), limit)
        return this.resuming(init, fetch(url, init))
      }
    })
    this.onmessage = (message) => this.settle(message)
  }

  override async send(message: JSONRPCMessage | Array<JSONRPCMessage>): Promise<void> {
    if (Array.isArray(message) || !("method" in message) || !("id" in message)) return super.send(message)
    const request: Waiting = { resumable: false, ended: false }
    this.waiting.set(message.id, request)
    try {
      await super.send(message, {
        onresumptiontoken: () => {
          request.resumable = true
        }
      })
    } catch (error) {
      this.waiting.delete(message.id)
      throw error
    }
  }

  /** Fails the requests whose streams have ended when the server does not let the SDK resume them. */
  private async resuming(init: RequestInit | undefined, attempt: Promise<Response>): Promise<Response> {
    const response = await attempt.catch((error: unknown) => {
      this.giveUp(init)
      throw error
    })
    if (!response.ok) this.giveUp(init)
    return response
  }

  private giveUp(init: RequestInit | undefined) {
    if (!new Headers(init?.headers).has("last-event-id")) return
    for (const [id, { ended }] of this.waiting) if (ended) this.onmessage?.(noReply(id))
  }

  private watched(response: Response, id: number | string | undefined, limit: number): Response {
    if (id === undefined || response.body === null) return response
    let bytes = 0
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        bytes += chunk.length
        if (bytes <= limit) return controller.enqueue(chunk)
        this.onmessage?.(frameTooBig(id, bytes, limit))
        controller.error(new Error("answer over the frame limit"))
      }
    })
    const ended = () => void setTimeout(() => this.ended(id), readGrace).unref()
    response.body.pipeTo(writable).then(ended, ended)
    return new Response(readable, { status: response.status, headers: response.headers })
  }

  private settle(message: JSONRPCMessage) {
    if (!("method" in message) && message.id !== undefined) this.waiting.delete(message.id)
  }

  private ended(id: number | string) {
    const request = this.waiting.get(id)
    if (request === undefined) return
    request.ended = true
    if (!request.resumable) this.onmessage?.(noReply(id))
  }
}

/** An error of the event stream itself, not of a message on it. */
export const isSseError = (error: unknown): boolean => error instanceof SseError

/** The older HTTP+SSE transport (MCP 2024-11-05); failing answers keep their headers too. */
export class SseTransport extends SSEClientTransport {
  private refused: HttpAnswer | undefined

  constructor(server: HttpServer) {
    super(new URL(server.url), {
      requestInit: { headers: { ...server.headers } },
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        if (init?.method === "POST") return checked(response)
        if (!response.ok) this.refused = await answerOf(response.clone())
        return response
      }
    })
  }

  override async start(): Promise<void> {
    try {
      await super.start()
    } catch (error) {
      throw this.refused === undefined ? error : new HttpFailure(this.refused)
    }
  }
}
