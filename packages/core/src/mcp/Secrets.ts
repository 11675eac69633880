import type { ServerConfig } from "./ServerConfig.js"

/** Variables whose values say where and how, not who. */
const harmless =
  /^(PATH|PATHEXT|HOME|PWD|OLDPWD|SHELL|SHLVL|USER|LOGNAME|TERM|LANG|LC_\w+|TZ|TMPDIR|TMP|TEMP|HOSTNAME|EDITOR|XDG_\w+|NODE_ENV|_)$/i

const shortest = 4

/** names of flags, headers and variables whose values are secrets */
const secretName = /key|token|secret|pass|pwd|auth|bearer|credential|cookie|header|dsn|\bpat\b/i

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const partsOfUrl = (text: string): ReadonlyArray<string> => {
  if (!URL.canParse(text)) return []
  const { password, search, searchParams, username } = new URL(text)
  const written = search.slice(1).split("&").map((pair) => pair.slice(pair.indexOf("=") + 1))
  return [username, decoded(username), password, decoded(password), ...searchParams.values(), ...written]
}

/** The value of a header such as `Bearer abc`, and its last word. */
const partsOfValue = (value: string): ReadonlyArray<string> => [value, value.slice(value.lastIndexOf(" ") + 1)]

/** `--api-key abc`, `--api-key=abc`, `-e API_KEY=abc`, `--header "Authorization: Bearer abc"`, `postgres://me:abc@host`. */
const secretsOfArgument = (argument: string, before: string | undefined): ReadonlyArray<string> => {
  const [, name = "", value = ""] = /^-{0,2}([\w.-]+)\s*[=:]\s*(.+)$/s.exec(argument) ?? []
  const isValue = before !== undefined && /^-[^=]*$/.test(before) && secretName.test(before)
  return [
    ...partsOfUrl(argument),
    ...partsOfUrl(value),
    ...(secretName.test(name) || (isValue && value !== "") ? partsOfValue(value) : []),
    ...(isValue ? partsOfValue(argument) : [])
  ]
}

const secretsOf = ({ endpoint }: ServerConfig): ReadonlyArray<string> =>
  endpoint._tag === "stdio"
    ? [
      ...Object.entries(endpoint.env).flatMap(([name, value]) =>
        harmless.test(name) ? [] : [value, ...partsOfUrl(value)]
      ),
      ...endpoint.args.flatMap((argument, index) => secretsOfArgument(argument, endpoint.args[index - 1]))
    ]
    : [...Object.values(endpoint.headers).flatMap(partsOfValue), ...partsOfUrl(endpoint.url)]

/**
 * Replaces what may be a secret of this server (values of its environment and headers, arguments that are named like
 * secrets, URL credentials and query) by `***` in a text that a person or an agent will read.
 */
export const masking = (config: ServerConfig): (text: string) => string => {
  const secrets = [...new Set(secretsOf(config))]
    .filter((secret) => secret.length >= shortest)
    .toSorted((one, other) => other.length - one.length)
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, "***"), text)
}
