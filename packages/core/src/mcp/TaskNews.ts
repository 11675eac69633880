import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import * as Effect from "effect/Effect"
import { isJsonObject, type JsonObject } from "../Json.js"

/** What a server tells of its tasks without being asked for it. */
export interface TaskNews {
  /** Completes once the server has told that the task has ended or needs input; it may never tell. */
  readonly told: (taskId: string) => Effect.Effect<void>
  /** Gives what was told of the task, and forgets it. */
  readonly take: (taskId: string) => JsonObject | undefined
  /** What the server asks its client for on behalf of the task; it stays unanswered. */
  readonly question: (taskId: string) => Effect.Effect<string>
}

/** tasks whose news are kept until somebody asks for them; news may come before the reply that creates the task */
const mostKept = 256

const relatedTask = "io.modelcontextprotocol/related-task"
const methodNotFound = -32_601

/** Values by key, for which somebody may be waiting already. */
const makeMailbox = <A>() => {
  const kept = new Map<string, A>()
  const waiting = new Map<string, (value: A) => void>()
  return {
    put: (key: string, value: A) => {
      kept.delete(key)
      kept.set(key, value)
      for (const oldest of kept.keys()) {
        if (kept.size <= mostKept) break
        kept.delete(oldest)
      }
      waiting.get(key)?.(value)
    },
    take: (key: string) => {
      const value = kept.get(key)
      kept.delete(key)
      return value
    },
    wait: (key: string) =>
      Effect.async<A>((resume) => {
        const value = kept.get(key)
        if (value !== undefined) return resume(Effect.succeed(value))
        waiting.set(key, (value) => {
          waiting.delete(key)
          resume(Effect.succeed(value))
        })
        return Effect.sync(() => waiting.delete(key))
      })
  }
}

const taskOf = ({ _meta: meta }: JsonObject): string | undefined => {
  const related = isJsonObject(meta) ? meta[relatedTask] : undefined
  return isJsonObject(related) && typeof related["taskId"] === "string" ? related["taskId"] : undefined
}

/** The words of an elicitation, and the fields that it wants; the method of any other request. */
const questionOf = (method: string, { message, requestedSchema, url }: JsonObject): string => {
  if (typeof message !== "string") return method
  const fields = isJsonObject(requestedSchema) && isJsonObject(requestedSchema["properties"])
    ? Object.keys(requestedSchema["properties"])
    : []
  return [
    message,
    ...(fields.length === 0 ? [] : [`(fields: ${fields.join(", ")})`]),
    ...(typeof url === "string" ? [`(at ${url})`] : [])
  ].join(" ")
}

const refused = Object.assign(new Error("Method not found"), { code: methodNotFound })

/** Listens from before `initialize` on, so that nothing is missed. */
export const listenForTasks = (client: Client): TaskNews => {
  const news = makeMailbox<JsonObject>()
  const questions = makeMailbox<string>()

  client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method !== "notifications/tasks/status" || !isJsonObject(params)) return
    const { status, taskId } = params
    // News of progress would cost a look each; the next look sees it.
    if (typeof taskId === "string" && typeof status === "string" && status !== "working") news.put(taskId, params)
  }
  client.fallbackRequestHandler = async ({ method, params }) => {
    const taskId = isJsonObject(params) ? taskOf(params) : undefined
    if (taskId === undefined || !isJsonObject(params)) throw refused
    questions.put(taskId, questionOf(method, params))
    // Nobody is there to answer, and a refusal would answer in the user's name.
    return new Promise(() => {})
  }

  return {
    told: (taskId) => Effect.asVoid(news.wait(taskId)),
    take: news.take,
    question: questions.wait
  }
}
