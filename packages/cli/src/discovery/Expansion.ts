import * as Either from "effect/Either"
import type { Environment } from "../HostEnvironment.js"

/** Turns a text of the configuration into what it stands for; Left: the names of variables that are not set. */
export type Expand = (text: string) => Either.Either<string, ReadonlyArray<string>>

const reference = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/**
 * `${VAR}`, `${VAR:-default}` and `${env:VAR}`. As in a shell, `:-` also replaces an empty value. Any other `${…}` and
 * `$VAR` stay as they are.
 */
export const expandStrictly = (env: Environment): Expand => (text) => {
  const missing: Array<string> = []
  const expanded = text.replace(reference, (_, name: string, fallback: string | undefined) => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (fallback !== undefined) return value === undefined || value === "" ? fallback : value
    if (value === undefined) missing.push(name)
    return value ?? ""
  })
  return missing.length > 0 ? Either.left([...new Set(missing)]) : Either.right(expanded)
}

/** As `expandStrictly`, but a reference to an unset variable stays literal: what Claude Code does. */
export const expandLeniently = (env: Environment): Expand => (text) =>
  Either.right(
    text.replace(reference, (all: string, name: string, fallback: string | undefined) =>
      Object.hasOwn(env, name) ? env[name] ?? all : fallback ?? all)
  )

/** For a configuration whose host has expanded everything. */
export const verbatim: Expand = Either.right
