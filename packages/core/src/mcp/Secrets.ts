import type { ServerConfig } from "./ServerConfig.js"

/** Variables whose values say where and how, not who. */
const harmless =
  /^(PATH|PATHEXT|HOME|PWD|OLDPWD|SHELL|SHLVL|USER|LOGNAME|TERM|LANG|LC_\w+|TZ|TMPDIR|TMP|TEMP|HOSTNAME|EDITOR|XDG_\w+|NODE_ENV|_)$/i

const shortest = 4

const partsOfUrl = (text: string): ReadonlyArray<string> => {
  if (!URL.canParse(text)) return []
  const url = new URL(text)
  return [url.username, url.password, decodeURIComponent(url.password), ...url.searchParams.values()]
}

const secretsOf = ({ endpoint }: ServerConfig): ReadonlyArray<string> =>
  endpoint._tag === "stdio"
    ? Object.entries(endpoint.env).flatMap(([name, value]) => harmless.test(name) ? [] : [value])
    : [
      ...Object.values(endpoint.headers).flatMap((value) => [value, value.slice(value.lastIndexOf(" ") + 1)]),
      ...partsOfUrl(endpoint.url)
    ]

/**
 * Replaces what may be a secret of this server (values of its environment, headers, URL credentials and query) by
 * `***` in a text that a person or an agent will read.
 */
export const masking = (config: ServerConfig): (text: string) => string => {
  const secrets = [...new Set(secretsOf(config))]
    .filter((secret) => secret.length >= shortest)
    .toSorted((one, other) => other.length - one.length)
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, "***"), text)
}
