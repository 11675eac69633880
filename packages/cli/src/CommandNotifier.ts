import { NotifyFailure, Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import type { Notice, Recipient } from "@gcszhn/mcp-sentinel-core/Notifier"
import { Notifier } from "@gcszhn/mcp-sentinel-core/Notifier"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import type { CommandTemplate } from "./CommandTemplate.js"
import { fill, parseTemplate } from "./CommandTemplate.js"
import { HostEnvironment } from "./HostEnvironment.js"
import type { HostSession } from "./HostSession.js"
import { hostSession } from "./HostSession.js"
import type { Harness } from "./Options.js"
import type { CommandFailure, CommandResult } from "./RunCommand.js"
import { runCommand } from "./RunCommand.js"

/** Passed to poll in place of an id: reach the calling session by the host's own command. */
export const auto = "auto"

/** ms that one command may take (SPEC "mcp_sentinel_set_notifier_commands") */
const commandTimeout = 30_000

/** Notices whose delivered commands are remembered, so that another try does not run them again. */
const remembered = 1_000

/** The commands that tell the end of a task, under an id that poll takes. */
export class NotifierCommands extends Context.Tag("@gcszhn/mcp-sentinel-cli/NotifierCommands")<NotifierCommands, {
  /** Keeps the templates under a new id; refuses the first that is not one, saying why. */
  readonly set: (templates: ReadonlyArray<string>) => Effect.Effect<string, Refused>
  /** What is known of the session that calls. */
  readonly session: (recipient: Recipient["origin"]) => Effect.Effect<HostSession>
}>() {}

const refuseTemplate = (index: number, source: string, reason: string) =>
  new Refused({ field: "commands", message: `commands[${index}] ${reason}. It is: ${source.slice(0, 200)}` })

const make = (harness: Harness) =>
  Effect.gen(function*() {
    const host = yield* HostEnvironment
    const scope = yield* Effect.scope
    const known = yield* Ref.make<ReadonlyMap<string, ReadonlyArray<CommandTemplate>>>(new Map())
    const done = yield* Ref.make<ReadonlyMap<string, ReadonlySet<number>>>(new Map())
    const session = (origin: Recipient["origin"]) =>
      Effect.provideService(hostSession(harness, origin), HostEnvironment, host)

    const set = Effect.fnUntraced(function*(templates: ReadonlyArray<string>) {
      const parsed = yield* Effect.forEach(templates, (source, index) =>
        Either.mapLeft(parseTemplate(source), (reason) => refuseTemplate(index, source, reason)))
      const id = `notifier_${globalThis.crypto.randomUUID().replaceAll("-", "")}`
      yield* Ref.update(known, (all) =>
        new Map([...all, [id, parsed]]))
      return id
    })

    const commandsOf = Effect.fnUntraced(function*({ notifierId, origin }: Recipient) {
      if (notifierId === undefined) return []
      if (notifierId === auto) return automatic(yield* session(origin))
      return (yield* Ref.get(known)).get(notifierId)
    })

    const accept = Effect.fnUntraced(function*(recipient: Recipient) {
      const commands = yield* commandsOf(recipient)
      const about = yield* session(recipient.origin)
      if (commands === undefined) return yield* unknownId(recipient.notifierId ?? "")
      if (recipient.notifierId === auto && commands.length === 0) return yield* noAuto(harness)
      return { notifies: commands.length > 0, advice: advice(commands, about) }
    })

    /** A command belongs to the layer: who waits for it may be gone before it has ended, the program may not. */
    const owned = <A, E>(command: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          Effect.forkIn(restore(command), scope),
          (fiber) => Effect.onInterrupt(restore(Fiber.join(fiber)), () => Fiber.interruptFork(fiber))
        )
      )

    const run = Effect.fnUntraced(function*(notice: Notice, template: CommandTemplate, about: HostSession) {
      const [command, ...args] = fill(template, notice.text)
      const result = yield* Effect.either(
        owned(runCommand({ command, args, env: about.env, cwd: host.cwd, timeout: commandTimeout }))
      )
      const outcome = outcomeOf(result)
      if (outcome !== undefined) {
        yield* Effect.logWarning(`Notifier command of ${notice.id} (${template.words[0]}): ${outcome.message}`)
      }
      return outcome
    })

    const notify = Effect.fnUntraced(function*(notice: Notice) {
      const commands = (yield* commandsOf(notice)) ?? []
      const about = yield* session(notice.origin)
      const before = (yield* Ref.get(done)).get(notice.id) ?? new Set()
      const failures: Array<NotifyFailure> = []
      for (const [index, template] of commands.entries()) {
        if (before.has(index)) continue
        const failure = yield* run(notice, template, about)
        if (failure === undefined) yield* Ref.update(done, remember(notice.id, index))
        else failures.push(failure)
      }
      const worst = failures.find(({ certainty }) => certainty === "unknown") ?? failures[0]
      if (worst !== undefined) return yield* worst
    })

    return Context.make(Notifier, { accept, notify }).pipe(Context.add(NotifierCommands, { set, session }))
  })

const remember = (id: string, index: number) => (done: ReadonlyMap<string, ReadonlySet<number>>) => {
  const entries = [...done].filter(([key]) => key !== id).slice(-remembered)
  return new Map([...entries, [id, new Set([...(done.get(id) ?? []), index])]])
}

const automatic = ({ program, templates }: HostSession): ReadonlyArray<CommandTemplate> => {
  const [first] = templates.flatMap((source) => Option.toArray(Either.getRight(parseTemplate(source))))
  return first === undefined ? [] : [{ ...first, words: [program, ...first.words.slice(1)] }]
}

const outcomeOf = (result: Either.Either<CommandResult, CommandFailure>): NotifyFailure | undefined => {
  if (Either.isLeft(result)) {
    const { kind, message } = result.left
    return new NotifyFailure({ message, certainty: kind === "timeout" ? "unknown" : "failed" })
  }
  const { exitCode, signal, stderr } = result.right
  if (exitCode === 0) return undefined
  const said = stderr.trim().split("\n")[0]?.slice(0, 300) ?? ""
  return new NotifyFailure({
    message: `${signal === null ? `exit code ${exitCode}` : `ended by ${signal}`}${said === "" ? "" : `: ${said}`}`,
    certainty: "failed"
  })
}

const unknownId = (id: string) =>
  new Refused({
    field: "notifier_id",
    message:
      `There is no notifier ${JSON.stringify(id)}. Take the id that mcp_sentinel_set_notifier_commands returned, ` +
      `or "auto", or leave notifier_id out and call mcp_sentinel_attach.`
  })

const noAuto = (harness: Harness) =>
  new Refused({
    field: "notifier_id",
    message:
      `notifier_id "auto" needs a host that tells which session calls (Codex, Claude Code); ${harness} does not. ` +
      `Leave notifier_id out and call mcp_sentinel_attach, or set commands with mcp_sentinel_set_notifier_commands.`
  })

/** What the agent should do now (SPEC "Harness layers": waits end with the host's process). */
const advice = (commands: ReadonlyArray<CommandTemplate>, { oneShot }: HostSession): string => {
  if (oneShot !== undefined) {
    return `This is a one-shot run (${oneShot}): it ends with your turn, and this wait with it. ` +
      `Call mcp_sentinel_attach with this ID before you end your turn.`
  }
  if (commands.length > 0) {
    return `When it ends, ${commands.length === 1 ? "a command tells" : `${commands.length} commands tell`} it ` +
      `(${commands.map(({ words }) => words.slice(0, 2).join(" ")).join("; ")} …): you may end your turn now. ` +
      `The wait ends with the host's process.`
  }
  return "Nobody will be told when it ends: call mcp_sentinel_attach with this ID before you end your turn. " +
    "The wait ends with the host's process."
}

/**
 * Tells the end of a task by commands, without a shell, the notice as one literal argument; 30 s each, in order. A
 * command that failed is tried again with the engine's retries, one that succeeded is not.
 */
export const layer = (harness: Harness): Layer.Layer<Notifier | NotifierCommands, never, HostEnvironment> =>
  Layer.scopedContext(make(harness))
