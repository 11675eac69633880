/**
 * The script of a job server, as JSON. It runs the same over stdio and over HTTP; what only one of them can do says so.
 */
export interface JobScript {
  /** tools by name; a tool's calls walk through its steps, and the last step repeats */
  readonly tools?: Readonly<Record<string, ScriptedTool>> | undefined
  /** adds `start_job {polls}` and `get_status {id}`, which keep jobs in memory: a job is done after that many looks */
  readonly jobs?: boolean | undefined
  /** tools on one page of `tools/list` */
  readonly pageSize?: number | undefined
  /** every page has the same cursor */
  readonly stuckCursor?: boolean | undefined
  /** does not announce `notifications/tools/list_changed` */
  readonly silentTools?: boolean | undefined
  readonly hangList?: boolean | undefined
  readonly hangPing?: boolean | undefined
  readonly start?: StartScript | undefined
  /** stdio: SIGTERM does not end the process */
  readonly ignoreSigterm?: boolean | undefined
  /** stdio: the end of stdin does not end the process */
  readonly ignoreEof?: boolean | undefined
  readonly http?: HttpScript | undefined
}

export interface ScriptedTool {
  readonly steps: ReadonlyArray<Step>
  /** calls with a `task` become tasks of MCP 2025-11-25; the faults of their steps hit the request that creates them */
  readonly task?: TaskScript | undefined
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined
}

/** How tasks of a tool go. They live as long as the process, whatever the session. */
export interface TaskScript {
  /** default `required` */
  readonly support?: "required" | "optional" | undefined
  /** one after the other, from the creation on; the last one lasts */
  readonly stages: ReadonlyArray<TaskStage>
  readonly pollInterval?: number | undefined
  /** ms after its creation at which the server forgets a task */
  readonly expires?: number | undefined
  /** stdio: tells each change of status, `first` even before the reply that creates the task */
  readonly push?: boolean | "first" | undefined
  /** answers the call at once, as if no task had been asked for */
  readonly ignored?: boolean | undefined
  /** status requests that are answered by an internal error before one is answered well */
  readonly hiccups?: number | undefined
  readonly hangCancel?: boolean | undefined
}

export interface TaskStage {
  readonly status: "working" | "input_required" | "completed" | "failed"
  readonly statusMessage?: string | undefined
  /** ms that the stage lasts (default 0) */
  readonly millis?: number | undefined
  /** what `tasks/result` gives once the task has ended: a step's answer */
  readonly result?: Step | undefined
  /** an elicitation, sent to who asks for the result of a task that needs input */
  readonly question?: string | undefined
}

/** How the server comes up. */
export interface StartScript {
  /** never answers `initialize` */
  readonly hang?: boolean | undefined
  /** ms before it answers `initialize` */
  readonly delay?: number | undefined
  readonly protocolVersion?: string | undefined
  /** what the server calls itself (default `job-server`) */
  readonly name?: string | undefined
  /** stdio: lines on stdout before the first message */
  readonly banner?: ReadonlyArray<string> | undefined
  /** stdio: a byte order mark before the first message */
  readonly bom?: boolean | undefined
  /** stdio: a line on stderr */
  readonly stderr?: string | undefined
  /** stdio: exits with this code before it has read anything */
  readonly exit?: number | undefined
}

/** One call. The answer is the first of `result`, `isError`, `bytes`, `image`, `text`, `json` that is given. */
export interface Step {
  /** how many calls this step stands for (default 1) */
  readonly repeat?: number | undefined
  /** a text block with this JSON */
  readonly json?: unknown
  readonly text?: string | undefined
  /** a whole CallToolResult, valid or not */
  readonly result?: unknown
  /** `isError: true` with this text */
  readonly isError?: string | undefined
  /** a text of this many characters */
  readonly bytes?: number | undefined
  /** a small PNG */
  readonly image?: boolean | undefined
  readonly rpcError?: { readonly code: number; readonly message: string } | undefined
  /** ms before the answer */
  readonly delay?: number | undefined
  /** ms between progress notifications during `delay` */
  readonly progressEvery?: number | undefined
  /** never answers */
  readonly hang?: boolean | undefined
  /** sends `notifications/tools/list_changed` after the answer (stdio) */
  readonly toolsChanged?: boolean | undefined
  /** stdio: exits with this code instead of answering */
  readonly exit?: number | undefined
  /** stdio: SIGKILL instead of an answer */
  readonly kill?: boolean | undefined
  /** stdio: answers, then exits with this code */
  readonly thenExit?: number | undefined
  /** stdio: a line on stdout before the answer */
  readonly noise?: string | undefined
  /** stdio: bytes on stderr before the answer */
  readonly stderr?: number | undefined
  /** HTTP: this instead of the answer; over stdio the step's answer is sent */
  readonly http?: HttpFault | undefined
}

/** What HTTP gives instead of an answer. */
export type HttpFault =
  | {
    readonly status: number
    readonly headers?: Readonly<Record<string, string>> | undefined
    readonly body?: string | undefined
  }
  /** `reset`: the connection is cut; `close`: the event stream ends without the answer; `cut`: it is cut */
  | { readonly end: "reset" | "close" | "cut" }

export interface HttpScript {
  /** answers of POSTs as one JSON document or as an event stream (default json) */
  readonly replies?: "json" | "sse" | undefined
  /** the older HTTP+SSE transport at `/sse` instead of Streamable HTTP at `/mcp` */
  readonly legacySse?: boolean | undefined
  /** event ids on streams, which promise that they can be resumed */
  readonly eventIds?: boolean | undefined
  /** instead of answers to the first requests of `initialize` */
  readonly initialize?: ReadonlyArray<HttpFault> | undefined
  /** how a request with a forgotten session is answered (default 404) */
  readonly staleSession?: "404" | "400" | undefined
  /** no answer to DELETE */
  readonly hangDelete?: boolean | undefined
}

/** What a server reports, in order. */
export type JobEvent =
  /** stdio: a process has started; `env` are the names of its variables */
  | { readonly type: "start"; readonly pid: number; readonly env: ReadonlyArray<string> }
  | { readonly type: "initialize"; readonly client: string }
  | { readonly type: "list" }
  /** `inFlight` counts this call */
  | {
    readonly type: "call"
    readonly tool: string
    readonly args: Readonly<Record<string, unknown>>
    readonly inFlight: number
    /** the call asked for a task */
    readonly task?: boolean
  }
  /** a request about a task (`tasks/get`, `tasks/result`, `tasks/cancel`) */
  | { readonly type: "task"; readonly method: string; readonly taskId: string }
  /** the answer of a call goes out; `at` in ms since the epoch, with fractions, comparable between processes */
  | { readonly type: "answer"; readonly tool: string; readonly at: number }
  | { readonly type: "cancelled" }
  | { readonly type: "eof" }
  | { readonly type: "sigterm" }
  /** HTTP: a session was opened, given back */
  | { readonly type: "session"; readonly id: string }
  | { readonly type: "delete"; readonly id: string }

/** A JSON-RPC message as far as the server reads it. */
export interface Message {
  readonly id?: number | string | undefined
  readonly method?: string | undefined
  readonly params?: {
    readonly name?: string
    readonly arguments?: Record<string, unknown>
    readonly cursor?: string
    readonly task?: { readonly ttl?: number }
    readonly taskId?: string
    readonly clientInfo?: { readonly name?: string }
    readonly _meta?: { readonly progressToken?: unknown }
  } | undefined
}

/** How the server reaches its client. */
export interface Wire {
  readonly send: (message: unknown) => void
  /** puts text that is no message on the wire */
  readonly noise: (text: string) => void
  readonly crash: (how: number | "SIGKILL") => void
  /** false: this wire has no such fault, and the step's answer is sent */
  readonly fault: (fault: HttpFault) => Promise<boolean>
}
