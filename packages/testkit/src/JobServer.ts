import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { makeJobServer, readEvents } from "./job-server.mjs"
import type { HttpFault, JobEvent, JobScript, Message, Wire } from "./JobScript.js"

/** The program of the stdio server: `node <program> <script as JSON> [<event log>]`. It needs no build. */
export const jobServerProgram = fileURLToPath(new URL("./job-server.mjs", import.meta.url))

/** What tests read of a server. */
export interface Counters {
  readonly events: () => ReadonlyArray<JobEvent>
  /** requests about tasks, by method */
  readonly asked: (method: string) => number
  /** calls of one tool, or of all */
  readonly calls: (tool?: string) => number
  readonly maxInFlight: () => number
  readonly count: (type: JobEvent["type"]) => number
}

const countersOf = (events: () => ReadonlyArray<JobEvent>): Counters => {
  const calls = () => events().filter((event) => event.type === "call")
  return {
    events,
    calls: (tool) => calls().filter((call) => tool === undefined || call.tool === tool).length,
    asked: (method) => events().filter((event) => event.type === "task" && event.method === method).length,
    maxInFlight: () => Math.max(0, ...calls().map((call) => call.inFlight)),
    count: (type) => events().filter((event) => event.type === type).length
  }
}

/** How to start a scripted stdio server, and what its processes reported. Steps go on across restarts. */
export interface StdioJobs extends Counters {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** the ids of all processes so far */
  readonly pids: () => ReadonlyArray<number>
}

/** Prepares a stdio job server; its event log goes with the scope. */
export const stdioJobs = (script: JobScript) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "job-server-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    ),
    (folder): StdioJobs => {
      const log = join(folder, "events.jsonl")
      const counters = countersOf(() => readEvents(log))
      return {
        ...counters,
        command: process.execPath,
        args: [jobServerProgram, JSON.stringify(script), log],
        pids: () => counters.events().flatMap((event) => event.type === "start" ? [event.pid] : [])
      }
    }
  )

/** A scripted server on loopback. */
export interface HttpJobs extends Counters {
  readonly url: string
  /** forgets all sessions, as a restart would */
  readonly forget: () => void
  /** closes the port and cuts every connection */
  readonly down: Effect.Effect<void>
  /** opens the same port again */
  readonly up: Effect.Effect<void>
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString("utf8")
}

const listen = (server: Server, port: number) =>
  Effect.async<number>((resume) => {
    server.listen(port, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const closeServer = (server: Server) =>
  Effect.async<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

const sse = (data: string, options: { readonly event?: string; readonly id?: string | undefined } = {}) =>
  `${options.event === undefined ? "" : `event: ${options.event}\n`}${
    options.id === undefined ? "" : `id: ${options.id}\n`
  }data: ${data}\n\n`

const giveFault = (fault: HttpFault, response: ServerResponse) => {
  if ("status" in fault) return void response.writeHead(fault.status, fault.headers).end(fault.body ?? "")
  if (fault.end === "reset") return void response.socket?.resetAndDestroy()
  if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(
    ": nothing will come\n\n",
    () => fault.end === "close" ? response.end() : response.socket?.resetAndDestroy()
  )
}

/** Starts a scripted HTTP server on a free loopback port; it stops with the scope. */
export const httpJobs = Effect.fn("httpJobs")(function*(script: JobScript) {
  const { http = {} } = script
  const events: Array<JobEvent> = []
  const sessions = new Set<string>()
  const streams = new Map<string, ServerResponse>()
  const refusals = [...http.initialize ?? []]
  const jobs = makeJobServer(script, (event) => events.push(event))

  const wireOver = (response: ServerResponse, headers: Record<string, string>): Wire => {
    const streaming = http.replies === "sse"
    const begin = () => {
      if (response.headersSent) return
      response.writeHead(200, { ...headers, "content-type": "text/event-stream" })
      if (http.eventIds === true) response.write(sse("", { id: randomUUID() }))
    }
    return {
      send: (message) => {
        const text = JSON.stringify(message)
        const isReply = text.includes("\"result\":") || text.includes("\"error\":")
        if (!isReply || streaming || response.headersSent) {
          begin()
          response.write(sse(text))
          if (isReply) response.end()
        } else response.writeHead(200, { ...headers, "content-type": "application/json" }).end(text)
      },
      noise: () => {},
      crash: () => void response.socket?.resetAndDestroy(),
      fault: async (fault) => {
        if (!("status" in fault) && fault.end !== "reset") begin()
        giveFault(fault, response)
        return true
      }
    }
  }

  const openSession = () => {
    const id = randomUUID()
    sessions.add(id)
    events.push({ type: "session", id })
    return id
  }

  const stale = (response: ServerResponse) => {
    const message = http.staleSession === "400" ? "Bad Request: No valid session ID provided" : "Session not found"
    response.writeHead(http.staleSession === "400" ? 400 : 404, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }))
  }

  const post = async (request: IncomingMessage, response: ServerResponse) => {
    const message: Message = JSON.parse(await readBody(request))
    const session = request.headers["mcp-session-id"]
    if (message.method === "initialize") {
      const refusal = refusals.shift()
      if (refusal !== undefined) return giveFault(refusal, response)
      return jobs.receive(message, wireOver(response, { "mcp-session-id": openSession() }))
    }
    if (typeof session !== "string" || !sessions.has(session)) return stale(response)
    if (message.id === undefined) response.writeHead(202).end()
    return jobs.receive(message, wireOver(response, {}))
  }

  const legacy = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    if (request.method === "GET" && path === "/sse") {
      const id = openSession()
      streams.set(id, response)
      response.writeHead(200, { "content-type": "text/event-stream" })
      return void response.write(sse(`/messages/${id}`, { event: "endpoint" }))
    }
    const stream = streams.get(path.replace("/messages/", ""))
    if (request.method !== "POST" || stream === undefined) return void response.writeHead(404).end("Cannot do that")
    const message: Message = JSON.parse(await readBody(request))
    const wire: Wire = {
      send: (answer) => void stream.write(sse(JSON.stringify(answer), { event: "message" })),
      noise: () => {},
      crash: () => void stream.socket?.resetAndDestroy(),
      fault: async (fault) => {
        if (!("status" in fault)) stream.socket?.resetAndDestroy()
        giveFault(fault, response)
        return true
      }
    }
    await jobs.receive(message, wire)
    if (!response.headersSent) response.writeHead(202).end()
  }

  const streamable = (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === "POST") return post(request, response)
    if (request.method === "DELETE") {
      const id = String(request.headers["mcp-session-id"])
      events.push({ type: "delete", id })
      sessions.delete(id)
      return http.hangDelete === true ? undefined : void response.writeHead(200).end()
    }
    return void response.writeHead(405).end()
  }

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const path = (request.url ?? "").split("?", 1)[0] ?? ""
    if (http.legacySse === true) return void legacy(request, response, path)
    if (path !== "/mcp") return void response.writeHead(404).end()
    void streamable(request, response)
  }

  let server = createServer(handle)
  const port = yield* listen(server, 0)
  yield* Effect.addFinalizer(() => Effect.suspend(() => closeServer(server)))
  const jobsHandle: HttpJobs = {
    ...countersOf(() => events),
    url: `http://127.0.0.1:${port}${http.legacySse === true ? "/sse" : "/mcp"}`,
    forget: () => sessions.clear(),
    down: Effect.suspend(() => closeServer(server)),
    up: Effect.suspend(() => {
      server = createServer(handle)
      return Effect.asVoid(listen(server, port))
    })
  }
  return jobsHandle
})
