import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { createServer } from "node:http"

/** One message of a request, in the same words whatever the wire format. */
export interface LlmMessage {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly text: string
}

/** A tool as the model was shown it. */
export interface LlmTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: unknown
}

/** What a wire format reads out of a request's body. */
export interface LlmPrompt {
  readonly model: string
  readonly tools: ReadonlyArray<LlmTool>
  readonly messages: ReadonlyArray<LlmMessage>
}

/** One inference request, as the scripted model saw it. */
export interface LlmRequest extends LlmPrompt {
  /** ms since the epoch */
  readonly at: number
  /** `side`: a request without tools (a title, a summary). Harnesses make them on their own; tests count `turn`s. */
  readonly kind: "turn" | "side"
  readonly path: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** the body as it came over the wire */
  readonly body: unknown
}

export interface LlmCall {
  readonly name: string
  /** a string is sent as it stands, as a model would that writes broken JSON */
  readonly input: unknown
}

/** What the scripted model answers. */
export type Answer = Data.TaggedEnum<{
  Say: { readonly text: string }
  Call: { readonly calls: ReadonlyArray<LlmCall> }
  /** an HTTP error instead of an answer */
  Fail: { readonly status: number; readonly message: string }
}>
export const Answer = Data.taggedEnum<Answer>()

/** The model says this and ends its turn. */
export const say = (text: string): Answer => Answer.Say({ text })
/** The model calls one tool. */
export const call = (name: string, input: unknown = {}): Answer => Answer.Call({ calls: [{ name, input }] })
/** The model calls several tools in one answer. */
export const callAll = (...calls: ReadonlyArray<LlmCall>): Answer => Answer.Call({ calls })

/** The text of the last user message. */
export const lastUser = (request: LlmPrompt): string =>
  request.messages.findLast((message) => message.role === "user")?.text ?? ""

/** The messages after the last user message: what happened in this turn so far. */
export const sinceUser = (request: LlmPrompt): ReadonlyArray<LlmMessage> =>
  request.messages.slice(request.messages.findLastIndex((message) => message.role === "user") + 1)

/** The text of the last tool result. */
export const lastToolResult = (request: LlmPrompt): string =>
  request.messages.findLast((message) => message.role === "tool")?.text ?? ""

/** One answer of a script: fixed, computed from the request, or an Effect (to delay it, or hold it behind a Deferred). */
export type Step = Answer | ((request: LlmRequest) => Answer | Effect.Effect<Answer>)

/** Answers a request, or passes it on to the next rule. */
export type Rule = (request: LlmRequest) => Option.Option<Step>

export type Match = string | RegExp | ((request: LlmRequest) => boolean)

const matches = (match: Match, request: LlmRequest): boolean =>
  typeof match === "function" ?
    match(request) :
    typeof match === "string"
    ? lastUser(request).includes(match)
    : match.test(lastUser(request))

/**
 * A turn of the script. When the last user message matches, the first request of that turn gets the first step, the
 * request after its tool result the second, and so on; the last step repeats. It holds no state of its own, so that
 * sessions on one server do not disturb each other.
 */
export const on = (match: Match, ...steps: readonly [Step, ...ReadonlyArray<Step>]): Rule => (request) => {
  if (!matches(match, request)) return Option.none()
  const done = sinceUser(request).filter((message) => message.role === "tool").length
  return Option.fromNullable(steps[Math.min(done, steps.length - 1)])
}

const firstStep = (rules: ReadonlyArray<Rule>, request: LlmRequest): Step =>
  Option.getOrElse(
    Option.firstSomeOf(rules.map((rule) => rule(request))),
    () => say(request.kind === "side" ? "Title" : `UNSCRIPTED: ${lastUser(request).slice(0, 200)}`)
  )

const runStep = (step: Step, request: LlmRequest): Effect.Effect<Answer> => {
  const answer = typeof step === "function" ? step(request) : step
  return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
}

/** How one API puts prompts and answers on the wire. `write` yields the body of a `text/event-stream`, event by event. */
export interface WireFormat {
  readonly name: string
  /** the path of inference requests, for example `/v1/chat/completions` */
  readonly accepts: (path: string) => boolean
  readonly read: (body: unknown) => LlmPrompt
  readonly write: (answer: Exclude<Answer, { _tag: "Fail" }>, request: LlmRequest) => ReadonlyArray<string>
  /** answers other paths a client asks for (a model list); by default they get 404 */
  readonly other?: ((path: string) => unknown) | undefined
}

/** Formats one server-sent event. */
export const sseEvent = (data: unknown, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`

/** The model waited for did not come; `message` lists what came instead. */
export class LlmTimeout extends Data.TaggedError("LlmTimeout")<{ readonly message: string }> {}

/** A scripted model that listens on loopback. */
export interface Llm {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string
  /** every inference request so far */
  readonly requests: Effect.Effect<ReadonlyArray<LlmRequest>>
  /** the requests that carried tools: what an agent's user pays for */
  readonly turns: Effect.Effect<ReadonlyArray<LlmRequest>>
  /** the first request, past or future, that matches */
  readonly awaitRequest: (match: Match, within: Duration.DurationInput) => Effect.Effect<LlmRequest, LlmTimeout>
}

const requestOf = (
  format: WireFormat,
  http: HttpServerRequest.HttpServerRequest,
  path: string,
  body: unknown,
  at: number
) => {
  const prompt = format.read(body)
  const request: LlmRequest = {
    ...prompt,
    at,
    kind: prompt.tools.length > 0 ? "turn" : "side",
    path,
    headers: http.headers,
    body
  }
  return request
}

const summary = (requests: ReadonlyArray<LlmRequest>): string =>
  requests.map((request) => `${request.kind}: ${lastUser(request).slice(0, 120)}`).join("\n")

/**
 * Starts a scripted model on a free loopback port; it stops with the scope. Rules are tried in order, the first that
 * answers wins. A turn that no rule knows is answered `UNSCRIPTED: …`, so that a test sees it and a harness does not
 * retry it.
 */
export const serveLlm = Effect.fn("serveLlm")(function*(format: WireFormat, rules: ReadonlyArray<Rule>) {
  const seen = yield* SubscriptionRef.make<ReadonlyArray<LlmRequest>>([])
  const server = yield* NodeHttpServer.make(() => createServer(), { host: "127.0.0.1", port: 0 })

  const answer = Effect.fnUntraced(function*(http: HttpServerRequest.HttpServerRequest, path: string) {
    const request = requestOf(format, http, path, yield* http.json, Date.now())
    yield* SubscriptionRef.update(seen, (all) => [...all, request])
    const given = yield* runStep(firstStep(rules, request), request)
    if (given._tag === "Fail") {
      return yield* HttpServerResponse.json({ error: { message: given.message } }, { status: given.status })
    }
    return HttpServerResponse.text(format.write(given, request).join(""), { contentType: "text/event-stream" })
  })

  yield* server.serve(Effect.gen(function*() {
    const http = yield* HttpServerRequest.HttpServerRequest
    const path = http.url.split("?", 1)[0] ?? ""
    if (http.method === "POST" && format.accepts(path)) return yield* answer(http, path)
    const other = format.other?.(path)
    return yield* HttpServerResponse.json(other ?? {}, { status: other === undefined ? 404 : 200 })
  }))

  const requests = SubscriptionRef.get(seen)
  const awaitRequest = (match: Match, within: Duration.DurationInput) =>
    seen.changes.pipe(
      Stream.map((all) => all.find((request) => matches(match, request))),
      Stream.filter((request) => request !== undefined),
      Stream.runHead,
      Effect.flatten,
      Effect.timeout(within),
      Effect.catchAll(() =>
        Effect.flatMap(requests, (all) =>
          new LlmTimeout({ message: `no request matched ${String(match)}; these came:\n${summary(all)}` }))
      )
    )
  const llm: Llm = {
    origin: HttpServer.formatAddress(server.address),
    requests,
    turns: Effect.map(requests, (all) => all.filter((request) => request.kind === "turn")),
    awaitRequest
  }
  return llm
})
