import { assert, describe, it } from "@effect/vitest"
import { startCli } from "@gcszhn/mcp-sentinel-testkit/CliClient"
import type { JobScript } from "@gcszhn/mcp-sentinel-testkit/JobScript"
import { httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import { attach, done, idOf, isDone, poll, read, says, status } from "./support.js"

type Fields = Readonly<Record<string, unknown>>

/** A secret, and the entry that holds it. All of it, and any half of it, must stay where it is. */
const secret = (place: string) => `${place}-canary-5d41402abc4b2a76b9719d911017c592`

const inEnvironment = secret("env")
const inArgument = secret("argument")
const inHeader = secret("header")
const inQuery = secret("query")
const inUser = secret("user")
const inPassword = secret("p%40ss")
const inVariable = secret("variable")

const everySecret = [
  inEnvironment,
  inArgument,
  inHeader,
  inQuery,
  inUser,
  inPassword,
  inPassword.replace("%40", "@"),
  inVariable
]

/** eight characters of a secret are too many */
const pieces = everySecret.flatMap((text) => {
  const [, rest = ""] = text.split("canary")
  return [text, text.slice(0, 12), rest.slice(-16), rest.slice(-8)]
})

const assertNoSecret = (text: string) => {
  for (const piece of pieces) assert.notInclude(text, piece)
}

const printed = `TOKEN=${inEnvironment} argv=${inArgument} again ${inEnvironment}${inArgument}`

interface Leak {
  readonly name: string
  readonly script?: JobScript
  /** over stdio when it gives none */
  readonly url?: (url: string) => string
  readonly entry?: Fields
  readonly says: string | RegExp
}

const unauthorised = (body: string) => ({
  status: 401,
  headers: { "www-authenticate": `Bearer error="${inHeader}"` },
  body
})

const leaks: ReadonlyArray<Leak> = [
  { name: "a crash that prints its environment", script: { start: { exit: 1, stderr: printed } }, says: "exit code 1" },
  {
    name: "a crash whose output is cut inside a secret",
    script: { start: { exit: 1, stderr: `${inEnvironment} ${"x".repeat(2_048 - 20)}` } },
    says: "xxx"
  },
  {
    name: "a crash whose output is cut inside a secret, where the end of it is shown",
    script: { start: { exit: 1, stderr: `${inEnvironment} ${"x".repeat(685)}` } },
    says: "xxx"
  },
  {
    name: "a hang that has printed its environment",
    script: { start: { hang: true, stderr: printed } },
    entry: { startupTimeout: 300 },
    says: "300 ms"
  },
  {
    name: "a JSON-RPC error that quotes it",
    script: { tools: { look: { steps: [{ rpcError: { code: -32_602, message: `bad ${printed}` } }] } } },
    says: "-32602"
  },
  {
    name: "a command that is not there",
    entry: { command: "no-such-command-here", args: ["--token", inArgument] },
    says: "ENOENT"
  },
  { name: "a folder that is not there", script: {}, entry: { cwd: "/no/such" }, says: "/no/such" },
  {
    name: "a 401 that echoes the token",
    script: {
      http: { initialize: Array.from({ length: 9 }, () => unauthorised(`{"error":{"message":"bad ${inHeader}"}}`)) }
    },
    url: (url) => url,
    says: "HTTP 401"
  },
  {
    name: "a 401 in a call that echoes the request",
    script: { tools: { look: { steps: [{ http: unauthorised(`Bearer ${inHeader} ?key=${inQuery}`) }] } } },
    url: (url) => url,
    says: "HTTP 401"
  },
  {
    name: "an error page that is cut inside a secret",
    script: { tools: { look: { steps: [{ http: { status: 500, body: `${"x".repeat(485)} ${inHeader}` } }] } } },
    url: (url) => url,
    says: "HTTP 500"
  },
  {
    name: "a login page with the address in it",
    script: {
      tools: {
        look: {
          steps: [{
            http: { status: 200, headers: { "content-type": "text/html" }, body: `${"x".repeat(185)} ${inQuery}` }
          }]
        }
      }
    },
    url: (url) => url,
    says: "text/html"
  },
  { name: "a port that nobody listens on", url: () => "http://127.0.0.1:2/mcp", says: "ECONNREFUSED" },
  { name: "a host that does not exist", url: () => "http://mcp-sentinel.invalid/mcp", says: "mcp-sentinel.invalid" },
  {
    name: "a URL with user and password",
    url: (url) => url.replace("//", `//${inUser}:${inPassword}@`),
    says: "credentials"
  },
  { name: "no TLS", url: (url) => url.replace("http:", "https:"), says: /SSL|TLS|wrong version/i }
]

describe("secrets of the configuration", () => {
  it.scopedLive("are in no text and no log line, whatever a server does with them", () =>
    Effect.gen(function*() {
      const entries = yield* Effect.forEach(leaks, ({ entry = {}, script = {}, url }, index) =>
        Effect.gen(function*() {
          const name = `s${index}`
          if (url === undefined) {
            const jobs = yield* stdioJobs(script)
            const args = [...jobs.args, "--api-key", inArgument, `--token=${inArgument}`]
            return [name, { command: jobs.command, args, env: { SERVICE_TOKEN: inEnvironment }, ...entry }] as const
          }
          const jobs = yield* httpJobs(script)
          const headers = { Authorization: `Bearer ${inHeader}`, "X-Api-Key": inHeader, "X-Expanded": "${FROM_HOST}" }
          return [name, { url: `${url(jobs.url)}?key=${inQuery}`, headers }] as const
        }))
      const cli = yield* startCli({
        servers: Object.fromEntries(entries),
        args: ["--log-level", "trace"],
        env: { FROM_HOST: inVariable }
      })
      const texts = yield* Effect.forEach(leaks, ({ name, says: words }, index) =>
        Effect.gen(function*() {
          const ack = yield* poll(cli, { server: `s${index}`, tool: "look", until: isDone, max_errors: 1 })
          const id = idOf(ack)
          const end = yield* attach(cli, id)
          assert.strictEqual(end.structured["status"], "error", `${name}: ${end.text}`)
          says(end.text, words)
          return [ack, end, yield* status(cli, id), yield* read(cli, id)]
        }), { concurrency: 8 })
      assertNoSecret(JSON.stringify(texts))
      assertNoSecret(cli.stderr())
      const listed = yield* poll(cli, { server: "unknown", tool: "look", until: isDone })
      assert.isTrue(listed.isError)
      assertNoSecret(listed.text)
    }), 120_000)

  it.scopedLive("are not in what is said of a file or an entry that is wrong", () =>
    Effect.gen(function*() {
      const jobs = yield* stdioJobs({ tools: { look: { steps: [done] } } })
      const broken = `{ "mcpServers": { "a": { "env": { "TOKEN": "${inEnvironment}" "X" } } } }`
      const bad = JSON.stringify({
        mcpServers: {
          jobs,
          a: { command: ["x"], args: [inArgument, 5] },
          b: { command: "x", env: { TOKEN: inEnvironment, COUNT: 5 } },
          c: { url: `h.example/${inQuery}?key=${inQuery}` },
          d: { url: "http://h", headers: { Authorization: `Bearer ${inHeader}\n` } },
          e: { command: "x", env: { TOKEN: `${inEnvironment}\${NOPE}` } },
          f: { command: "x", args: `--token ${inArgument}` },
          g: { command: { TOKEN: inEnvironment } },
          h: { type: inArgument, command: "x" },
          i: { url: `ftp://${inUser}:${inPassword}@h` }
        }
      })
      for (const config of [broken, bad, broken.slice(0, 70), inEnvironment]) {
        const cli = yield* startCli({ config, args: ["--log-level", "trace"] })
        for (const server of ["a", "b", "c", "d", "e", "f", "g", "h", "i"]) {
          const refused = yield* poll(cli, { server, tool: "look", until: isDone })
          assert.isTrue(refused.isError, `${server}: ${refused.text}`)
          says(refused.text, cli.configFile)
          assertNoSecret(refused.text)
        }
        assertNoSecret(cli.stderr())
        says(cli.stderr(), cli.configFile)
      }
    }), 120_000)
})
