import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Prompt from "@effect/cli/Prompt"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { Plan } from "../Install.js"
import { apply, describePlan, planInstall, planUninstall } from "../Install.js"
import { installable, scopes } from "../InstallTarget.js"

const parameters = {
  harness: Args.choice(installable.map((name) => [name, name] as const), { name: "harness" }),
  scope: Options.choice("scope", scopes).pipe(
    Options.withDescription("user (default): for every project; project: in this folder (opencode, claude-code)"),
    Options.withDefault("user")
  ),
  yes: Options.boolean("yes").pipe(Options.withAlias("y"), Options.withDescription("do not ask")),
  dryRun: Options.boolean("dry-run").pipe(Options.withDescription("show the change, write nothing"))
}

interface Consent {
  readonly yes: boolean
  readonly dryRun: boolean
}

const ask = Prompt.run(Prompt.confirm({ message: "Write this?", initial: true })).pipe(
  // Ctrl-C is a no
  Effect.catchTag("QuitException", () => Effect.succeed(false))
)

/** Shows the plan, asks, writes. Exit code 1: nothing was written although something should be. */
const carryOut = Effect.fnUntraced(function*(plan: Plan, { dryRun, yes }: Consent) {
  yield* Console.log(describePlan(plan))
  if (plan.edit === undefined || dryRun) return 0
  if (!yes && !process.stdin.isTTY) {
    yield* Console.error("Nothing was written: nobody can be asked here. Give --yes.")
    return 1
  }
  if (!yes && !(yield* ask)) {
    yield* Console.error("Nothing was written.")
    return 1
  }
  yield* apply(plan)
  yield* Console.log(plan.undoes ? "Uninstalled." : "Installed.")
  return 0
})

const told = <E extends { readonly message: string }, R>(effect: Effect.Effect<number, E, R>) =>
  effect.pipe(
    Effect.catchAll(({ message }) => Effect.as(Console.error(message), 1)),
    Effect.flatMap((code) =>
      Effect.sync(() => {
        process.exitCode = code
      })
    )
  )

export const installCommand = Command.make(
  "install",
  parameters,
  ({ harness, scope, ...consent }) =>
    told(Effect.flatMap(planInstall(harness, scope), (plan) => carryOut(plan, consent)))
).pipe(
  Command.withDescription(
    "put mcp-sentinel into a harness's configuration, with what it needs there; shows the change and asks"
  )
)

export const uninstallCommand = Command.make(
  "uninstall",
  parameters,
  ({ harness, scope, ...consent }) =>
    told(Effect.flatMap(planUninstall(harness, scope), (plan) => carryOut(plan, consent)))
).pipe(
  Command.withDescription("take mcp-sentinel out of a harness's configuration, which then is as it was before")
)
