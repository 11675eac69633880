import * as Either from "effect/Either"
import { parse } from "shell-quote"
import { stem } from "./SelfEntry.js"

/** Where the notice goes in a template. */
const hole = "{}"

/** A command with one place for the notice, in words as the program will get them. */
export interface CommandTemplate {
  readonly source: string
  readonly words: readonly [string, ...ReadonlyArray<string>]
}

const shellAdvice = `no shell runs it; where you need one, name it: sh -c 'printf "%s\\n" "$1" >> notices.md' _ {}`

/**
 * Splits a template into words by the quoting rules of a POSIX shell. Refused: anything that only a shell could do
 * (operators, variables, substitutions, patterns), a number of `{}` other than one, and a `{}` inside code that an
 * interpreter would run, since the notice is data (SPEC "mcp_sentinel_set_notifier_commands").
 */
export const parseTemplate = (source: string): Either.Either<CommandTemplate, string> =>
  Either.gen(function*() {
    const outside = source.replaceAll(/\\[^]|'[^']*'|"(?:\\[^]|[^"\\])*"/g, "")
    if (/['"]/.test(outside)) return yield* Either.left("has a quote that is not closed")
    if (outside.trim().includes("\n")) return yield* Either.left("has several lines; give each command on its own")
    if (source.replaceAll(/\\[^]|'[^']*'/g, "").includes("`")) {
      return yield* Either.left(`has a backtick, but ${shellAdvice}`)
    }
    const words = yield* split(source)
    const [program, ...args] = words
    if (program === undefined || program === "") return yield* Either.left("is empty")
    const holes = args.reduce((count, word) => count + word.split(hole).length - 1, 0)
    if (program.includes(hole)) {
      return yield* Either.left(`has ${hole} as its program; ${hole} is where the notice goes`)
    }
    if (holes !== 1) return yield* Either.left(`must have exactly one ${hole}, where the notice goes, and has ${holes}`)
    if (runsNotice([program, ...args])) {
      return yield* Either.left(`would run the notice as code: pass it as an argument, as in sh -c '… "$1" …' _ {}`)
    }
    return { source, words: [program, ...args] }
  })

const split = (source: string): Either.Either<ReadonlyArray<string>, string> =>
  Either.flatMap(
    Either.try({
      try: () => parse(source, (name) => ({ op: `$${name}` })),
      catch: () => `cannot be split into words; ${shellAdvice}`
    }),
    (tokens) => {
      const odd = tokens.find((token) => typeof token !== "string")
      return typeof odd !== "object"
        ? Either.right(tokens.filter((token) => typeof token === "string"))
        : Either.left(`uses ${JSON.stringify(nameOf(odd))} outside single quotes, but ${shellAdvice}`)
    }
  )

const nameOf = (token: object): string =>
  "pattern" in token ? String(token.pattern) : "op" in token ? String(token.op) : "#"

/** Programs that take code as an argument, and the flags in front of it. */
const interpreters: ReadonlyArray<readonly [programs: RegExp, flags: RegExp]> = [
  [/^(ba|z|k|da|a|fi|c|tc)?sh$/, /^-[a-z]*c$/],
  [/^(node|nodejs|bun|deno)$/, /^(-e|-p|-pe|--eval|--print|eval)$/],
  [/^(python[\d.]*|pypy3?)$/, /^-[A-Za-z]*c$/],
  [/^(perl|ruby)$/, /^-[a-zA-Z]*[eE]$/],
  [/^php$/, /^(-r|--run)$/],
  [/^lua[\d.]*$/, /^-e$/],
  [/^(pwsh|powershell)$/i, /^[-/](c|command|e|ec|encodedcommand)$/i],
  [/^cmd$/i, /^\/[ck]$/i],
  [/^osascript$/, /^-e$/],
  [/^(su|runuser|script|flock)$/, /^(-c|--command)$/],
  [/^env$/, /^(-S|--split-string)$/]
]

/** Whether the notice stands where an interpreter, itself or behind a program such as `env`, takes its code. */
const runsNotice = (words: ReadonlyArray<string>): boolean => {
  const at = words.findIndex((word) => word.includes(hole))
  const inline = words[at]?.replace(hole, "") ?? ""
  const before = words.slice(0, at).map(stem)
  const options = words.slice(words.findLastIndex((word, index) => index < at && !/^[-/]/.test(word)) + 1, at)
  if (before.some((program) => program === "eval" || program === "ssh")) return true
  return interpreters.some(([programs, flags]) =>
    before.some((program) => programs.test(program)) &&
    (options.some((option) => flags.test(option)) ||
      [...inline.matchAll(/^--?\w+/g)].some(([start]) => flags.test(start)))
  )
}

/** The words of the command with the notice as literal text. A program cannot be given a NUL character. */
export const fill = ({ words }: CommandTemplate, notice: string): CommandTemplate["words"] => {
  const literal = notice.replaceAll("\0", "\uFFFD")
  const [program, ...args] = words
  return [program, ...args.map((word) => word.split(hole).join(literal))]
}
