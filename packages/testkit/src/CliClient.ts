import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import {
  CallToolResultSchema,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type Tool
} from "@modelcontextprotocol/sdk/types.js"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type BoxProcess, type Ended, type HostBox, makeHostBox, processesWith } from "./HostBox.js"

/** The bundled command; `npm run build` makes it. */
export const cliProgram = fileURLToPath(new URL("../../cli/dist/bin.mjs", import.meta.url))

/** What an agent gets of a tool call. */
export interface ToolAnswer {
  readonly text: string
  readonly isError: boolean
  readonly structured: Readonly<Record<string, unknown>>
}

export interface CallOptions {
  /** ms; default 60 000 */
  readonly timeout?: number
  /** asks for progress, and is told of each */
  readonly onProgress?: (progress: { readonly progress: number; readonly message?: string | undefined }) => void
}

export interface CliOptions {
  /** entries of the file for `--mcp-config`; their own `env` may name anything */
  readonly servers?: Readonly<Record<string, unknown>>
  /** the file as it stands, in place of `servers` */
  readonly config?: string
  /** after `mcp --mcp-config FILE` */
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** the name that the agent's host gives itself */
  readonly clientName?: string
  /** false: the host never reads what the command writes to stderr */
  readonly readsStderr?: boolean
  /** true: a process between stands for the host, which can be killed without the command */
  readonly behindHost?: boolean
  /** false: nobody asks for `initialize` yet */
  readonly connects?: boolean
}

/** A call that brought no answer: a JSON-RPC error, an end of the connection, or the client's own timeout. */
export class CallFailure extends Data.TaggedError("CallFailure")<{ readonly message: string }> {}

/** The built `mcp-sentinel mcp`, running in a box of its own, with an MCP SDK client in the agent's role. */
export interface CliClient {
  readonly box: HostBox
  /** the file given with `--mcp-config` */
  readonly configFile: string
  readonly client: Client
  /** the process that was spawned: the command, or the host before it */
  readonly pid: number
  readonly call: (
    tool: string,
    args: Readonly<Record<string, unknown>>,
    options?: CallOptions
  ) => Effect.Effect<ToolAnswer, CallFailure>
  readonly tools: Effect.Effect<ReadonlyArray<Tool>, CallFailure>
  readonly connect: Effect.Effect<void, CallFailure>
  readonly stderr: () => string
  /** lines on stdout that are no JSON-RPC message */
  readonly stray: () => ReadonlyArray<string>
  /** ms on `performance.now()` when the last message came */
  readonly lastMessageAt: () => number
  /** the command and everything it started that is alive, orphans too (Linux) */
  readonly processes: Effect.Effect<ReadonlyArray<BoxProcess>>
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  readonly endStdin: Effect.Effect<void>
  /** Closes the reading end of the command's stdout. */
  readonly closeStdout: Effect.Effect<void>
  /** the end of the process that was spawned */
  readonly ended: Effect.Effect<Ended>
  /** Ends stdin, and waits until nothing of the tree is left, 9 s at most; gives what is left. */
  readonly close: Effect.Effect<ReadonlyArray<BoxProcess>>
}

/** Starts the command and passes everything through, with pipes that end with this process. */
const hostProgram = `
const child = require("node:child_process").spawn(process.execPath, process.argv.slice(1), { stdio: "pipe" })
process.stdin.pipe(child.stdin)
child.stdout.pipe(process.stdout)
child.stderr.pipe(process.stderr)
child.on("exit", (code) => process.exit(code ?? 1))
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => child.kill(name))
`

/** The client's side of the pipes. What is no message is kept, not hidden. */
class PipeTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: <T extends JSONRPCMessage>(message: T) => void
  readonly stray: Array<string> = []
  lastMessageAt = 0
  private rest = ""
  private readonly child: ChildProcess

  constructor(child: ChildProcess) {
    this.child = child
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => this.receive(chunk))
    child.stdin?.on("error", () => undefined)
    child.once("close", () => {
      if (this.rest !== "") this.stray.push(this.rest)
      this.onclose?.()
    })
  }

  async start() {}

  async close() {
    this.child.stdin?.end()
  }

  async send(message: JSONRPCMessage) {
    this.child.stdin?.write(serializeMessage(message))
  }

  private receive(chunk: string) {
    const lines = (this.rest + chunk).split("\n")
    this.rest = lines.pop() ?? ""
    for (const line of lines) this.read(line)
  }

  private read(line: string) {
    const message = parse(line)
    if (message === undefined) return void this.stray.push(line)
    this.lastMessageAt = performance.now()
    this.onmessage?.(message)
  }
}

const parse = (line: string): JSONRPCMessage | undefined => {
  try {
    return JSONRPCMessageSchema.parse(JSON.parse(line))
  } catch {
    return undefined
  }
}

const tolerated = (error: unknown) =>
  new CallFailure({ message: error instanceof Error ? error.message : String(error) })

const pause = 50
const patience = 9_000

/** Waits until no process is left, `millis` at most; gives what is left. */
export const vanished = (processes: Effect.Effect<ReadonlyArray<BoxProcess>>, millis: number) =>
  Effect.gen(function*() {
    let left = yield* processes
    for (let waited = 0; left.length > 0 && waited < millis; waited += pause) {
      yield* Effect.sleep(pause)
      left = yield* processes
    }
    return left
  })

/**
 * Starts the built command and initializes it. With the scope its stdin ends. A process of its tree that is then still
 * there after 9 s is killed and fails the test that made it, and so does a line on its stdout that is no JSON-RPC.
 */
export const startCli = Effect.fn("startCli")(function*(options: CliOptions = {}) {
  const box = yield* makeHostBox("cli")
  const configFile = join(box.root, "servers.json")
  const text = options.config ?? JSON.stringify({ mcpServers: options.servers ?? {} }, undefined, 2)
  writeFileSync(configFile, text)
  const command = [cliProgram, "mcp", "--mcp-config", configFile, ...options.args ?? []]
  const args = options.behindHost === true ? ["-e", hostProgram, ...command] : command
  const processes = processesWith(`HOME=${box.home}`)
  const child = spawn(process.execPath, args, {
    cwd: box.project,
    env: { ...box.env, ...options.env },
    stdio: "pipe"
  })
  const transport = new PipeTransport(child)
  const client = new Client({ name: options.clientName ?? "an-agent", version: "1.0.0" }, { capabilities: {} })
  const ended = yield* Deferred.make<Ended>()
  let stderr = ""
  if (options.readsStderr !== false) {
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk
    })
  }
  child.once("exit", (code, signal) => Deferred.unsafeDone(ended, Effect.succeed({ code, signal })))

  const close = Effect.suspend(() => {
    child.stdin.end()
    return vanished(processes, patience)
  })

  yield* Effect.addFinalizer(() =>
    Effect.flatMap(close, (left) => {
      for (const { pid } of left) process.kill(pid, "SIGKILL")
      const faults = [
        ...left.map(({ command, pid }) => `process ${pid} is left over: ${command}`),
        ...transport.stray.map((line) => `no JSON-RPC on stdout: ${line}`)
      ]
      return faults.length === 0 ? Effect.void : Effect.dieMessage(faults.join("\n"))
    })
  )

  const made: CliClient = {
    box,
    configFile,
    client,
    pid: child.pid ?? 0,
    call: (name, args, { onProgress, timeout = 60_000 } = {}) =>
      Effect.tryPromise({
        try: (signal) =>
          client.callTool({ name, arguments: args }, CallToolResultSchema, {
            signal,
            timeout,
            ...(onProgress === undefined ? {} : { onprogress: onProgress })
          }),
        catch: tolerated
      }).pipe(Effect.map((result): ToolAnswer => ({
        text: Array.isArray(result.content)
          ? result.content.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n")
          : "",
        isError: result.isError === true,
        structured: Object.fromEntries(Object.entries(result._meta?.["mcp-sentinel/data"] ?? {}))
      }))),
    tools: Effect.tryPromise({ try: async () => (await client.listTools()).tools, catch: tolerated }),
    connect: Effect.tryPromise({ try: () => client.connect(transport), catch: tolerated }),
    stderr: () => stderr,
    stray: () => transport.stray,
    lastMessageAt: () => transport.lastMessageAt,
    processes,
    signal: (name) => Effect.sync(() => void child.kill(name)),
    endStdin: Effect.sync(() => void child.stdin.end()),
    closeStdout: Effect.sync(() => void child.stdout.destroy()),
    ended: Deferred.await(ended),
    close
  }
  if (options.connects !== false) yield* made.connect
  return made
})
