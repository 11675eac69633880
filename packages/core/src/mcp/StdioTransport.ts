import { serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import spawn from "cross-spawn"
import type { ChildProcess } from "node:child_process"
import type { Writable } from "node:stream"
import { isJsonObject } from "../Json.js"
import { type Frame, makeFrameReader, replyIdOf } from "./FrameReader.js"
import { frameTooBig } from "./Mishap.js"
import { gone, type ProcessTree, processTree } from "./ProcessTree.js"
import type { StdioServer } from "./ServerConfig.js"

/** The longest message that is read from a server, in bytes (64 MiB); a longer one fails its call with a clear error. */
export const frameLimit = 64 * 1024 * 1024

/** What is known about a server process beyond its messages, for error texts. */
export interface ProcessEvidence {
  /** lines on stdout that were no JSON-RPC */
  readonly noise: number
  /** the last 2 KB of stderr */
  readonly stderr: string
  /** how it ended, as a clause; undefined while it runs */
  readonly ended: string | undefined
}

const stderrKept = 2_048
/** ms for a server to leave by itself once its stdin has ended (MCP 2025-11-25, stdio shutdown) */
const endGrace = 500
/** ms for it to leave after SIGTERM */
const termGrace = 1_500
const killGrace = 500
/** ms for output to arrive after a crash, while something of the tree still holds stdout open */
const drainGrace = 200

/**
 * An MCP transport over a child process with exactly the environment of its configuration. The child leads a process
 * group of its own, and `close` ends the whole group within 3 s: stdin ends, SIGTERM, SIGKILL. Lines on stdout that are
 * no JSON-RPC are counted and skipped.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: <T extends JSONRPCMessage>(message: T) => void

  private readonly server: StdioServer
  private readonly limit: number
  private child: ChildProcess | undefined
  private tree: ProcessTree | undefined
  private closing: Promise<void> | undefined
  private isClosed = false
  private noise = 0
  private stderr: Buffer = Buffer.alloc(0)
  private ended: string | undefined

  constructor(server: StdioServer, limit: number = frameLimit) {
    this.server = server
    this.limit = limit
  }

  get pid(): number | undefined {
    return this.child?.pid
  }

  get evidence(): ProcessEvidence {
    return { noise: this.noise, stderr: this.stderr.toString("utf8").trim(), ended: this.ended }
  }

  /** Starts the process; rejects with the spawn error (`code` ENOENT, EACCES…) when it cannot be started. */
  start(): Promise<void> {
    const { args, command, cwd, env } = this.server
    const windows = process.platform === "win32"
    const child = spawn(command, [...args], {
      env: { ...env },
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ["pipe", "pipe", "pipe"],
      detached: !windows,
      windowsHide: true
    })
    this.child = child
    const read = makeFrameReader(this.limit, (frame) => this.receive(frame))
    child.stdout?.on("data", read)
    child.stderr?.on("data", (chunk: Buffer) => {
      this.stderr = Buffer.concat([this.stderr, chunk]).subarray(-stderrKept)
    })
    for (const stream of child.stdio) stream?.on("error", (error) => this.onerror?.(error))
    child.once("exit", (code, signal) => this.exited(code, signal))
    child.once("close", () => this.closed())
    return new Promise((resolve, reject) => {
      child.once("error", (error) => {
        this.ended = "it could not be started"
        reject(error)
      })
      child.once("spawn", () => {
        if (child.pid !== undefined) this.tree = processTree(child.pid)
        resolve()
      })
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.child?.stdin
      if (!stdin?.writable) return reject(new Error("The server's stdin is closed"))
      this.gather(stdin)
      stdin.write(serializeMessage(message), (error) => error ? reject(error) : resolve())
    })
  }

  /** Messages of one turn of the event loop are written together, so that many polls wake the server once. */
  private gather(stdin: Writable) {
    if (stdin.writableCorked > 0) return
    stdin.cork()
    setImmediate(() => stdin.uncork())
  }

  /** Ends the process and everything it started, at once when nothing of it is left, within 3 s in any case. */
  close(): Promise<void> {
    return this.closing ??= this.endTree()
  }

  private async endTree(): Promise<void> {
    const { child, tree } = this
    if (tree !== undefined) {
      child?.stdin?.end()
      if (!await gone(tree, endGrace)) {
        tree.end()
        if (!await gone(tree, termGrace)) {
          tree.kill()
          await gone(tree, killGrace)
        }
      }
    }
    for (const stream of child?.stdio ?? []) stream?.destroy()
    this.closed()
  }

  private exited(code: number | null, signal: NodeJS.Signals | null) {
    this.ended ??= signal === null ? `its process ended with exit code ${code}` : `its process was ended by ${signal}`
    if (code !== 0) setTimeout(() => this.closed(), drainGrace).unref()
  }

  private closed() {
    if (this.isClosed) return
    this.isClosed = true
    this.onclose?.()
  }

  private receive(frame: Frame) {
    if (frame._tag === "TooBig") return this.refuse(frame)
    const text = frame.text.replace(/^\uFEFF/, "").trim()
    if (text === "") return
    const message = parse(text)
    if (message === undefined) this.noise++
    else this.onmessage?.(message)
  }

  private refuse(frame: Frame & { readonly _tag: "TooBig" }) {
    const id = replyIdOf(frame)
    if (id !== undefined) return this.onmessage?.(frameTooBig(id, frame.bytes, this.limit))
    this.ended = `it sent a message of ${frame.bytes} bytes, over the limit of ${this.limit}`
    void this.close()
  }
}

const parse = (text: string): JSONRPCMessage | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isMessage(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Tells messages from noise; the SDK checks a message once more before it acts on it. */
const isMessage = (value: unknown): value is JSONRPCMessage => {
  if (!isJsonObject(value) || value["jsonrpc"] !== "2.0") return false
  return typeof value["method"] === "string" ||
    (value["id"] !== undefined && (isJsonObject(value["result"]) || isJsonObject(value["error"])))
}
