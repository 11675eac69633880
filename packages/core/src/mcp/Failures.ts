import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isJsonObject } from "../Json.js"
import type { HttpAnswer, Mishap } from "./Mishap.js"

/** Where and when a mishap happened, as far as its meaning depends on it. */
export interface Circumstances {
  readonly server: string
  readonly tool: string
  /** `connect`: before the server had answered `initialize` */
  readonly phase: "connect" | "call"
  /** the server was reached before, over this or an earlier connection */
  readonly everConnected: boolean
  /** wall clock, ms since the epoch, for Retry-After dates */
  readonly now: number
  /** lines on stdout that were no JSON-RPC */
  readonly noise: number
  /** the end of the process's stderr */
  readonly stderr: string
}

/** What a mishap means (SPEC "Failed calls"). */
export interface Judgement {
  readonly kind: "fatal" | "tool" | "transport"
  readonly message: string
  /** the connection cannot be used any more, or should not be trusted */
  readonly reconnect: boolean
  /** the same call may be repeated at once */
  readonly repeat: boolean
  /** the server has surely not begun with what it was asked for */
  readonly unbegun?: boolean | undefined
  /** ms that the server asked to wait */
  readonly retryAfter?: number | undefined
}

const fatal = (message: string, reconnect = false): Judgement => ({ kind: "fatal", message, reconnect, repeat: false })
const tool = (message: string): Judgement => ({ kind: "tool", message, reconnect: false, repeat: false })
const transport = (message: string): Judgement => ({ kind: "transport", message, reconnect: true, repeat: true })

const parseDate = Schema.decodeOption(Schema.Date)

/** Retry-After in ms: seconds, or an HTTP date (RFC 9110). */
export const retryAfterMillis = (header: string | undefined, now: number): number | undefined => {
  const text = header?.trim() ?? ""
  if (/^\d+$/.test(text)) return Number(text) * 1_000
  return Option.match(parseDate(text), {
    onNone: () => undefined,
    onSome: (date) => Math.max(0, date.getTime() - now)
  })
}

/** The words of servers that have forgotten a session, in HTTP bodies and in JSON-RPC errors. */
const staleSession =
  /\bno valid session|session (id )?(was )?(not found|expired|invalid|unknown|terminated)|(invalid|unknown|expired|missing) (mcp )?session/i

const shown = 500

/** The server's own message, verbatim, out of a JSON-RPC error or the text of a body. */
const bodyMessage = (body: string): string => {
  const text = body.trim()
  try {
    const parsed: unknown = JSON.parse(text)
    const error = isJsonObject(parsed) ? parsed["error"] : undefined
    if (isJsonObject(error) && typeof error["message"] === "string") return error["message"]
    if (typeof error === "string") return error
  } catch {
    // not JSON: shown as it is
  }
  return text.slice(0, shown)
}

const quoted = (body: string): string => {
  const message = bodyMessage(body)
  return message === "" ? "" : `: ${message}`
}

/** Server `jobs`, tool `get_status`: … */
const at = ({ phase, server, tool }: Circumstances) =>
  phase === "connect"
    ? `Server ${JSON.stringify(server)}`
    : `Server ${JSON.stringify(server)}, tool ${JSON.stringify(tool)}`

const processNotes = ({ noise, stderr }: Circumstances): string =>
  (noise > 0
    ? ` Its stdout carried ${noise} line(s) that are not JSON-RPC; a stdio MCP server must print logs to stderr only.`
    : "") +
  (stderr === "" ? "" : ` The end of its stderr:\n${stderr}`)

const authorisation = (answer: HttpAnswer, circumstances: Circumstances): Judgement => {
  const who = `${at(circumstances)} answered HTTP ${answer.status}${quoted(answer.body)}.`
  if (answer.status === 403) {
    return fatal(`${who} The credentials in its configuration do not allow this; check its headers and their rights.`)
  }
  return fatal(
    answer.wwwAuthenticate === undefined
      ? `${who} It wants credentials: put the header that it expects into its configuration.`
      : `${who} It asks for an OAuth login or a token (WWW-Authenticate). Logins live in the harness's own store and ` +
        "cannot be reused here: put a static header, such as Authorization with an access token, into its configuration."
  )
}

const judgeHttp = (answer: HttpAnswer, circumstances: Circumstances): Judgement => {
  const { body, contentType, status } = answer
  if (status === 401 || status === 403) return authorisation(answer, circumstances)
  if (status < 300) {
    return transport(
      `${at(circumstances)} answered HTTP ${status} with ${
        contentType ?? "no content type"
      } instead of MCP: this looks ` +
        `like a page of a proxy or a login, not of the server. Check its URL. The page begins: ${
          body.trim().slice(0, 200)
        }`
    )
  }
  const retryAfter = retryAfterMillis(answer.retryAfter, circumstances.now)
  const failed = transport(`${at(circumstances)} answered HTTP ${status}${quoted(body)}`)
  if (status === 429 || retryAfter !== undefined) {
    return { ...failed, reconnect: false, repeat: false, unbegun: status === 429, retryAfter }
  }
  if (status === 404 && circumstances.phase === "connect") {
    return transport(`${failed.message}. There is no MCP endpoint at its URL now; check the URL's path.`)
  }
  return status === 404 || staleSession.test(body) ? { ...failed, unbegun: true } : failed
}

const judgeRpc = (code: number, message: string, circumstances: Circumstances): Judgement => {
  const text = `${at(circumstances)} answered with JSON-RPC error ${code}: ${message}`
  if (code === -32_602) return fatal(text)
  if (circumstances.phase === "connect") return transport(text)
  if (staleSession.test(message)) return { ...transport(text), unbegun: true }
  return tool(text)
}

/** SPEC "Failed calls", for everything but a result. */
export const judgeMishap = (mishap: Mishap, circumstances: Circumstances): Judgement => {
  const where = at(circumstances)
  switch (mishap._tag) {
    case "SpawnFailed": {
      const text = `${where}: its command ${JSON.stringify(mishap.command)} could not be started (${mishap.code}). ` +
        `Check that it is installed, and on the PATH that its configuration gives it${
          mishap.cwd === undefined ? "" : `, and that its folder ${JSON.stringify(mishap.cwd)} exists`
        }.`
      return circumstances.everConnected ? transport(text) : fatal(text)
    }
    case "Ended":
      return transport(
        `${where}: ${mishap.how}${circumstances.phase === "connect" ? " before it answered initialize" : ""}.${
          processNotes(circumstances)
        }`
      )
    case "Silent":
      return transport(
        `${where} did not answer${circumstances.phase === "connect" ? " initialize" : ""} within ${mishap.millis} ms.${
          processNotes(circumstances)
        }`
      )
    case "TooBig":
      return {
        kind: "transport",
        message: `${where} sent an answer of ${mishap.bytes} bytes, over the limit of ${mishap.limit} bytes for one ` +
          "message. Ask the tool for less.",
        reconnect: false,
        repeat: false
      }
    case "NoReply":
      return transport(`${where} closed its stream without an answer.`)
    case "Rpc":
      return judgeRpc(mishap.code, mishap.message, circumstances)
    case "Http":
      return judgeHttp(mishap, circumstances)
    case "Version":
      return fatal(
        `${where} speaks MCP protocol version ${JSON.stringify(mishap.version)}, which this client does not know. ` +
          "Update mcp-sentinel, or use a version of the server that speaks a published protocol version."
      )
    case "Self":
      return fatal(`${where} is an mcp-sentinel itself. Poll the server behind it, by that server's own name.`)
    case "Network":
      return transport(`${where}: ${mishap.message}`)
  }
}

/** The joined text blocks of an MCP result, whatever else it holds. */
export const resultText = (result: unknown): string => {
  const content = isJsonObject(result) ? result["content"] : undefined
  if (!Array.isArray(content)) return ""
  return content.flatMap((block) => isJsonObject(block) && typeof block["text"] === "string" ? [block["text"]] : [])
    .join("\n")
}

/** A result with `isError: true`: undefined when the result is good. */
export const judgeResult = (
  result: unknown,
  { server, tool: name }: Pick<Circumstances, "server" | "tool">
): Pick<Judgement, "kind" | "message"> | undefined => {
  if (!isJsonObject(result) || result["isError"] !== true) return undefined
  const message = resultText(result)
  const where = `Server ${JSON.stringify(server)}, tool ${JSON.stringify(name)}`
  return /^MCP error -32602\b/.test(message)
    ? { kind: "fatal", message: `${where}: ${message}` }
    : { kind: "tool", message: message === "" ? `${where} returned an error without text` : message }
}

/** Whether an error may mean that the server has no such tool, so that its list is worth a look. */
export const mayMeanUnknownTool = (message: string): boolean =>
  /-3260[12]\b/.test(message) ||
  (/\btool\b/i.test(message) && /unknown|not found|no such|does not exist|doesn't exist|not available/i.test(message))
