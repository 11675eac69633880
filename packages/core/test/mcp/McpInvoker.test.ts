import { assert, describe, it } from "@effect/vitest"
import { Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import { ConnectionPool } from "@gcszhn/mcp-sentinel-core/mcp/ConnectionPool"
import * as McpInvoker from "@gcszhn/mcp-sentinel-core/mcp/McpInvoker"
import { HostRules } from "@gcszhn/mcp-sentinel-core/mcp/ServerConfig"
import { ToolInvoker } from "@gcszhn/mcp-sentinel-core/ToolInvoker"
import type { JobScript, Step } from "@gcszhn/mcp-sentinel-testkit/JobScript"
import { httpJobs, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type { Entry } from "./support.js"
import {
  assertNoOrphans,
  call,
  done,
  eventually,
  http,
  invokerOf,
  running,
  server,
  serversOf,
  stdio
} from "./support.js"

const looks = (...steps: ReadonlyArray<Step>): JobScript => ({ tools: { look: { steps } } })

const invoke = (tool = "look", args = {}, session?: string) =>
  Effect.flatMap(ToolInvoker, (invoker) => invoker.invoke(call(tool, args, session)))
const failing = (tool = "look") => Effect.flip(invoke(tool))
const resolve = (server: string, tool: string) =>
  Effect.flatMap(ToolInvoker, (invoker) => invoker.resolve({ server, tool }, {}))

/** Runs a test body against one stdio server, and looks for orphans afterwards. */
const overStdio = <A, E>(
  script: JobScript,
  body: (
    jobs: Effect.Effect.Success<ReturnType<typeof stdioJobs>>
  ) => Effect.Effect<A, E, ToolInvoker | ConnectionPool>,
  more: Parameters<typeof stdio>[1] = {}
) =>
  Effect.scoped(Effect.gen(function*() {
    const jobs = yield* stdioJobs(script)
    yield* Effect.provide(body(jobs), invokerOf([stdio(jobs, more)]))
    assertNoOrphans(jobs)
  }))

const overHttp = <A, E>(
  script: JobScript,
  body: (jobs: Effect.Effect.Success<ReturnType<typeof httpJobs>>) => Effect.Effect<A, E, ToolInvoker | ConnectionPool>,
  more: Parameters<typeof http>[1] = {}
) =>
  Effect.scoped(Effect.flatMap(httpJobs(script), (jobs) => Effect.provide(body(jobs), invokerOf([http(jobs, more)]))))

describe("invoke over stdio", () => {
  it.live("gives values that no validation has touched", () =>
    overStdio(
      {
        tools: {
          look: { steps: [done] },
          schema: {
            steps: [done],
            outputSchema: { type: "object", required: ["x"], properties: { x: { type: "number" } } }
          },
          odd: {
            steps: [{ result: { content: [{ type: "hologram", shape: 1 }, { type: "text", text: "{\"a\":1}" }] } }]
          },
          bare: { steps: [{ result: { structuredContent: { a: 2 } } }] }
        }
      },
      () =>
        Effect.gen(function*() {
          assert.deepStrictEqual((yield* invoke("look")).value.json, { status: "done" })
          assert.deepStrictEqual((yield* invoke("schema")).value.json, { status: "done" })
          assert.deepStrictEqual((yield* invoke("odd")).value.json, { a: 1 })
          assert.deepStrictEqual((yield* invoke("bare")).value.json, { a: 2 })
        })
    ))

  it.live("starts a server again that crashed in a call, repeats the call, and says so once to each task", () =>
    overStdio(
      looks({ ...running, repeat: 2 }, { exit: 3 }, { ...running, repeat: 9 }),
      (jobs) =>
        Effect.scoped(Effect.gen(function*() {
          const [one, two] = [{}, {}]
          yield* Effect.flatMap(ToolInvoker, (invoker) => Effect.zip(invoker.hold("jobs"), invoker.hold("jobs")))
          assert.isFalse((yield* invoke("look", one)).restarted)
          assert.isFalse((yield* invoke("look", two)).restarted)
          const crashed = yield* invoke("look", one)
          assert.deepStrictEqual(crashed.value.json, { status: "running" })
          assert.isTrue(crashed.restarted)
          assert.isFalse((yield* invoke("look", one)).restarted)
          assert.isTrue((yield* invoke("look", two)).restarted)
          assert.strictEqual(jobs.count("start"), 2)
          assert.strictEqual(jobs.calls("look"), 6)
        }))
    ))

  it.live("starts a server again that crashed between calls", () =>
    overStdio(looks({ ...running, thenExit: 1 }, done), (jobs) =>
      Effect.gen(function*() {
        yield* invoke()
        yield* Effect.sleep(500)
        const second = yield* invoke()
        assert.isTrue(second.restarted)
        assert.strictEqual(jobs.calls("look"), 2)
      })))

  it.live("tells how a server died when the repeat dies too", () =>
    overStdio(looks({ kill: true }), (jobs) =>
      Effect.gen(function*() {
        const failure = yield* failing()
        assert.strictEqual(failure._tag, "TransportFailure")
        assert.match(failure.message, /"jobs", tool "look": its process was ended by SIGKILL/)
        assert.isTrue(failure._tag === "TransportFailure" && failure.restarted)
        assert.strictEqual(jobs.calls("look"), 2)
      })))

  it.live("tells what a server that cannot start said on stderr, without its secrets", () =>
    Effect.scoped(Effect.gen(function*() {
      const jobs = yield* stdioJobs({ start: { exit: 1, stderr: "bad key sk-secret-1" } })
      const entry = server("jobs", { ...stdio(jobs).endpoint, env: { KEY: "sk-secret-1" } } as Entry["endpoint"])
      const failure = yield* Effect.provide(failing(), invokerOf([entry]))
      assert.strictEqual(failure._tag, "TransportFailure")
      assert.match(failure.message, /exit code 1 before it answered initialize.*bad key \*\*\*/s)
      assertNoOrphans(jobs)
    })))

  it.live("ends at once for a command that was never there", () =>
    Effect.gen(function*() {
      const failure = yield* failing()
      assert.strictEqual(failure._tag, "FatalFailure")
      assert.match(failure.message, /"jobs".*"no-such-cmd".*ENOENT/)
    }).pipe(Effect.provide(invokerOf([stdio({ command: "no-such-cmd", args: [] })]))))

  it.live("bounds a server that does not answer initialize, and mentions the noise on its stdout", () =>
    overStdio({ start: { hang: true, banner: ["Welcome!"] } }, () =>
      Effect.gen(function*() {
        const failure = yield* failing()
        assert.strictEqual(failure._tag, "TransportFailure")
        assert.match(failure.message, /did not answer initialize within 300 ms.*1 line\(s\) that are not JSON-RPC/)
      }), { startupTimeout: 300 }))

  it.live("repeats a call that hangs over the same process while the server is alive", () =>
    overStdio(looks({ hang: true }, done), (jobs) =>
      Effect.gen(function*() {
        const { restarted, value } = yield* invoke()
        assert.deepStrictEqual(value.json, { status: "done" })
        assert.isFalse(restarted)
        assert.strictEqual(jobs.count("start"), 1)
        assert.strictEqual(jobs.count("cancelled"), 1)
      }), { callTimeout: 300 }))

  it.live("starts a server again that hangs altogether", () =>
    overStdio({ ...looks({ hang: true }, done), hangPing: true }, (jobs) =>
      Effect.gen(function*() {
        assert.isTrue((yield* invoke()).restarted)
        assert.strictEqual(jobs.count("start"), 2)
      }), { callTimeout: 300 }))

  it.live("waits for a slow call as long as it makes progress", () =>
    overStdio(looks({ ...done, delay: 900, progressEvery: 100 }), () =>
      Effect.gen(function*() {
        assert.deepStrictEqual((yield* invoke()).value.json, { status: "done" })
      }), { callTimeout: 300 }))

  it.live("cancels the call of an interrupted caller", () =>
    overStdio(looks({ hang: true }), (jobs) =>
      Effect.gen(function*() {
        const fiber = yield* Effect.fork(invoke())
        yield* eventually(() => jobs.calls() === 1)
        yield* Fiber.interrupt(fiber)
        yield* eventually(() => jobs.count("cancelled") === 1)
      })))

  it.live("offers the value of an error, and takes invalid arguments and unknown tools as fatal", () =>
    overStdio(
      {
        tools: {
          error: { steps: [{ isError: "{\"status\":\"pending\"}" }] },
          rpc: { steps: [{ rpcError: { code: -32603, message: "boom" } }] },
          args: { steps: [{ rpcError: { code: -32602, message: "id is required" } }] },
          sdk: { steps: [{ isError: "MCP error -32602: Input validation error" }] },
          sayUnknown: { steps: [{ isError: "tool x not found in project" }] }
        }
      },
      () =>
        Effect.gen(function*() {
          const error = yield* failing("error")
          assert.deepStrictEqual(error._tag === "ToolFailure" && error.value.json, { status: "pending" })
          assert.match((yield* failing("rpc")).message, /-32603: boom/)
          for (const tool of ["args", "sdk"]) assert.strictEqual((yield* failing(tool))._tag, "FatalFailure")
          assert.strictEqual((yield* failing("sayUnknown"))._tag, "ToolFailure")
          const unknown = yield* failing("lok")
          assert.strictEqual(unknown._tag, "FatalFailure")
          assert.match(unknown.message, /no tool "lok". Its tools: "error", "rpc".*said: .*Unknown tool: lok/)
        })
    ))

  it.live("leaves the server's own error where its tools cannot be listed", () =>
    overStdio({ ...looks(done), pageSize: 1, stuckCursor: true }, () =>
      Effect.gen(function*() {
        const failure = yield* failing("lok")
        assert.match(failure.message, /tool "lok" answered with JSON-RPC error -32602: Unknown tool: lok/)
      })))

  it.live("never polls another sentinel", () =>
    overStdio({ ...looks(done), start: { name: "mcp-sentinel" } }, () =>
      Effect.gen(function*() {
        const failure = yield* failing()
        assert.strictEqual(failure._tag, "FatalFailure")
        assert.match(failure.message, /is an mcp-sentinel itself/)
      })))

  it.live("refuses a protocol version that it does not know", () =>
    overStdio({ start: { protocolVersion: "2099-01-01" } }, () =>
      Effect.gen(function*() {
        const failure = yield* failing()
        assert.strictEqual(failure._tag, "FatalFailure")
        assert.match(failure.message, /"2099-01-01"/)
      })))

  it.live("survives noise, floods and images", () =>
    overStdio(
      looks({ ...running, noise: "{\"level\":\"info\"}" }, { ...running, stderr: 300_000 }, { image: true }, {
        bytes: 12_000_000
      }),
      (jobs) =>
        Effect.gen(function*() {
          for (const _ of [1, 2]) assert.deepStrictEqual((yield* invoke()).value.json, { status: "running" })
          assert.notInclude((yield* invoke()).value.raw, "iVBOR")
          assert.strictEqual((yield* invoke()).value.raw.length, 12_000_000)
          assert.strictEqual(jobs.count("start"), 1)
        })
    ))

  it.live("is fatal for a server that has left the configuration", () =>
    Effect.gen(function*() {
      assert.match((yield* failing()).message, /no longer in the configuration. No usable server/)
    }).pipe(Effect.provide(invokerOf([]))))
})

describe("invoke over HTTP", () => {
  for (const replies of ["json", "sse"] as const) {
    it.live(`calls with answers as ${replies}`, () =>
      overHttp(
        { ...looks(running, { ...done, delay: 50, progressEvery: 10 }), http: { replies } },
        (jobs) =>
          Effect.gen(function*() {
            yield* invoke()
            const second = yield* invoke()
            assert.deepStrictEqual(second.value.json, { status: "done" })
            assert.isFalse(second.restarted)
            assert.strictEqual(jobs.count("session"), 1)
          })
      ))
  }

  for (const staleSession of ["404", "400"] as const) {
    it.live(`opens a new session when the old one is answered ${staleSession}`, () =>
      overHttp({ ...looks(running, done), http: { staleSession } }, (jobs) =>
        Effect.gen(function*() {
          yield* invoke()
          jobs.forget()
          const second = yield* invoke()
          assert.deepStrictEqual(second.value.json, { status: "done" })
          assert.strictEqual(jobs.count("session"), 2)
        })))
  }

  it.live("repeats once over a new session after 5xx, a reset, HTML of a proxy, and a stream without answer", () =>
    Effect.forEach(
      [
        { status: 503 },
        { status: 200, headers: { "content-type": "text/html; charset=utf-8" }, body: "<html>" },
        { end: "reset" },
        { end: "close" },
        { end: "cut" }
      ] as const,
      (fault) =>
        overHttp(looks({ http: fault }, done), (jobs) =>
          Effect.gen(function*() {
            assert.deepStrictEqual((yield* invoke()).value.json, { status: "done" })
            assert.strictEqual(jobs.calls(), 2)
          }))
    ))

  it.live("tells what failed when the repeat fails too", () =>
    overHttp(
      looks({ http: { status: 500, body: "{\"error\":{\"message\":\"db down\"}}" } }),
      (jobs) =>
        Effect.gen(function*() {
          const failure = yield* failing()
          assert.strictEqual(failure._tag, "TransportFailure")
          assert.match(failure.message, /HTTP 500: db down/)
          assert.strictEqual(jobs.calls(), 2)
        })
    ))

  it.live("does not repeat what the server asked to wait for", () =>
    overHttp(
      looks(
        { http: { status: 429, headers: { "retry-after": "7" } } },
        { http: { status: 503, headers: { "retry-after": new Date(Date.now() + 30_000).toUTCString() } } },
        done
      ),
      (jobs) =>
        Effect.gen(function*() {
          const first = yield* failing()
          assert.strictEqual(first._tag === "TransportFailure" && first.retryAfter, 7_000)
          const second = yield* failing()
          assert.isTrue(second._tag === "TransportFailure" && (second.retryAfter ?? 0) > 20_000)
          assert.strictEqual(jobs.calls(), 2)
          yield* invoke()
          assert.strictEqual(jobs.count("session"), 1)
        })
    ))

  it.live("does not repeat 401 and 403, at connect or later", () =>
    Effect.gen(function*() {
      const oauth = { status: 401, headers: { "www-authenticate": "Bearer resource_metadata=\"x\"" } }
      const [connect, call, forbidden] = yield* Effect.all([
        overHttp({ ...looks(done), http: { initialize: [oauth] } }, () => text),
        overHttp(looks({ http: oauth }), () => text),
        overHttp(looks({ http: { status: 403, body: "not for you" } }), () => text)
      ])
      assert.match(connect, /^FatalFailure Server "jobs" answered HTTP 401.*OAuth/)
      assert.match(call, /^FatalFailure Server "jobs", tool "look" answered HTTP 401.*OAuth/)
      assert.match(forbidden, /^FatalFailure .*403: not for you/)
    }))

  it.live("repeats a call over a port that was closed for a while, and counts when it stays closed", () =>
    overHttp(looks({ ...running, repeat: 9 }), (jobs) =>
      Effect.gen(function*() {
        yield* invoke()
        yield* jobs.down
        const failure = yield* failing()
        assert.strictEqual(failure._tag, "TransportFailure")
        assert.match(failure.message, /ECONNREFUSED/)
        yield* jobs.up
        jobs.forget()
        yield* invoke()
      })))

  it.live("gives up a stream that the server does not resume", () =>
    Effect.forEach(
      [{ end: "close" }, { end: "cut" }] as const,
      (fault) =>
        overHttp({ ...looks({ http: fault }, done), http: { replies: "sse", eventIds: true } }, (jobs) =>
          Effect.gen(function*() {
            const from = performance.now()
            assert.deepStrictEqual((yield* invoke()).value.json, { status: "done" })
            assert.strictEqual(jobs.calls(), 2)
            assert.isBelow(performance.now() - from, 4_000)
          }))
    ))

  it.live("gives up a stream whose server is gone", () =>
    overHttp(
      { ...looks({ hang: true }, done), http: { replies: "sse", eventIds: true } },
      (jobs) =>
        Effect.gen(function*() {
          const fiber = yield* Effect.fork(failing())
          yield* eventually(() => jobs.calls() === 1)
          yield* jobs.down
          const failure = yield* Fiber.join(fiber)
          assert.match(failure.message, /ECONNREFUSED/)
        })
    ))

  for (const transport of ["auto", "sse"] as const) {
    it.live(`speaks the older transport (${transport}), and connects again when its stream is cut`, () =>
      overHttp(
        { ...looks(running, { http: { end: "reset" } }, done), http: { legacySse: true } },
        (jobs) =>
          Effect.gen(function*() {
            yield* invoke()
            assert.deepStrictEqual((yield* invoke()).value.json, { status: "done" })
            assert.strictEqual(jobs.count("session"), 2)
          }),
        { transport }
      ))
  }

  it.live("tells the first answer when neither transport is there", () =>
    Effect.forEach(
      ["auto", "http", "sse"] as const,
      (transport) =>
        Effect.scoped(Effect.flatMap(httpJobs({}), (jobs) =>
          Effect.gen(function*() {
            const failure = yield* failing()
            assert.strictEqual(failure._tag, "TransportFailure")
            assert.match(failure.message, /404/)
          }).pipe(Effect.provide(invokerOf([http({ url: `${jobs.url}/nothing` }, { transport })])))))
    ))

  it.live("keeps the status of a failing POST of the older transport", () =>
    overHttp(looks({ http: { status: 401 } }), () => Effect.void).pipe(
      Effect.zipRight(
        overHttp(
          { ...looks({ http: { status: 403, body: "no" } }), http: { legacySse: true } },
          () => Effect.map(text, (failure) => assert.match(failure, /^FatalFailure .*403: no/)),
          { transport: "sse" }
        )
      )
    ))
})

const text = Effect.map(failing(), (failure) => `${failure._tag} ${failure.message}`)

const refusal = (server: string, tool: string) =>
  Effect.map(Effect.flip(resolve(server, tool)), (refused) => refused.message)

describe("resolve", () => {
  const catalogue = {
    servers: [server("web", { _tag: "http", url: "http://127.0.0.1:1/mcp", headers: {}, transport: "http" })],
    unusable: [
      { name: "off", kind: "disabled", reason: "disabled in the file", source: "a.json" },
      { name: "me", kind: "self", reason: "it runs mcp-sentinel", source: "a.json" },
      { name: "bad", kind: "broken", reason: "line 3: no command.", source: "a.json" }
    ],
    problems: ["a.toml could not be read: line 9."]
  } as const
  const layerOf = (...catalogues: Parameters<typeof serversOf>) =>
    McpInvoker.layer.pipe(Layer.provide([ConnectionPool.layer, serversOf(...catalogues)]))

  it.effect("names the known servers, why others cannot be used, and what went wrong", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* refusal("nope", "x"),
        "There is no server \"nope\". Known servers: \"web\". a.toml could not be read: line 9."
      )
      assert.match(yield* refusal("off", "x"), /"off" \(a.json\) cannot be used: disabled in the file. Enable it/)
      assert.match(yield* refusal("me", "x"), /sentinel itself/)
      assert.match(yield* refusal("bad", "x"), /line 3: no command. Correct that entry/)
      assert.deepStrictEqual((yield* resolve("web", "any")).warnings, [])
    }).pipe(Effect.provide(layerOf(catalogue))))

  it.effect("discovers again for an unknown server", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* resolve("web", "look"), { server: "web", tool: "look", warnings: [] })
    }).pipe(Effect.provide(layerOf({}, catalogue))))

  it.effect("names the rule that forbids a tool", () =>
    Effect.gen(function*() {
      assert.match(yield* refusal("web", "write"), /"write" of server "web" is in the disabled_tools/)
      assert.match(yield* refusal("web", "other"), /not in the enabled_tools .*: "look", "write"/)
      assert.match(yield* refusal("shut", "other"), /which are: none/)
      assert.strictEqual((yield* resolve("web", "look")).tool, "look")
    }).pipe(Effect.provide(layerOf({
      servers: [
        { ...catalogue.servers[0]!, enabledTools: ["look", "write"], disabledTools: ["write"] },
        { ...catalogue.servers[0]!, name: "shut", enabledTools: [] }
      ]
    }))))

  it.effect("holds the host's permissions, for the raw names", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* refusal("web", "web_look"), "denied: web/look")
    }).pipe(
      Effect.provide(layerOf(catalogue)),
      Effect.provideService(HostRules, {
        permit: (target) => new Refused({ message: `denied: ${target.server}/${target.tool}` }),
        publicNames: ({ server, tool }) => [`${server}_${tool}`]
      })
    ))

  it.effect("asks back when names are unclear", () =>
    Effect.gen(function*() {
      assert.match(yield* refusal("a_b", "x"), /may mean server "a b", tool "x"; or server "a.b", tool "x"/)
    }).pipe(Effect.provide(layerOf({
      servers: [{ ...catalogue.servers[0]!, name: "a b" }, { ...catalogue.servers[0]!, name: "a.b" }]
    }))))

  it.live("reads public names by the server's own tools, and refuses and warns by them", () =>
    overStdio(
      {
        tools: {
          jobs_look: { steps: [done], annotations: { readOnlyHint: true } },
          wipe: { steps: [done], annotations: { destructiveHint: true } },
          write: { steps: [done], annotations: { readOnlyHint: false } }
        }
      },
      (jobs) =>
        Effect.gen(function*() {
          const first = yield* resolve("jobs", "jobs_look")
          assert.strictEqual(first.tool, "jobs_look")
          assert.strictEqual(jobs.count("list"), 1)
          assert.strictEqual((yield* resolve("jobs", "jobs_jobs_look")).tool, "jobs_look")
          assert.match(yield* refusal("jobs", "lok"), /no tool "lok". Its tools: "jobs_look", "wipe", "write"/)
          assert.match(first.warnings.join(), /^The sentinel runs its own, second process of server "jobs"/)
          for (const tool of ["wipe", "write"]) {
            assert.match((yield* resolve("jobs", tool)).warnings.join(), /each poll runs it again/)
          }
        }).pipe(Effect.provide(McpInvoker.layer.pipe(
          Layer.provide([ConnectionPool.layer, serversOf({ servers: [stdio(jobs)] })])
        )))
    ).pipe(Effect.provideService(HostRules, {
      permit: () => Effect.void,
      publicNames: ({ server, tool }) => [`${server}_${tool}`]
    })))

  it.live("learns the tools with the first good call", () =>
    overStdio(looks(done), (jobs) =>
      Effect.gen(function*() {
        assert.strictEqual((yield* resolve("jobs", "lok")).tool, "lok")
        yield* invoke()
        yield* invoke()
        yield* eventually(() => jobs.count("list") === 1)
        yield* Effect.sleep(50)
        assert.match(yield* refusal("jobs", "lok"), /no tool "lok"/)
      })))

  it.live("lists again before it refuses, where the server does not announce changes", () =>
    overStdio({ ...looks(done), silentTools: true }, (jobs) =>
      Effect.gen(function*() {
        yield* invoke()
        yield* eventually(() => jobs.count("list") === 1)
        yield* Effect.sleep(50)
        assert.match(yield* refusal("jobs", "lok"), /no tool "lok"/)
        assert.strictEqual(jobs.count("list"), 2)
      })))

  it.live("does not wait for ever for a list of tools", () =>
    overStdio({ ...looks(done), hangList: true }, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* resolve("jobs", "jobs_look")).tool, "look")
      }).pipe()).pipe(Effect.provideService(HostRules, {
        permit: () => Effect.void,
        publicNames: ({ server, tool }) => [`${server}_${tool}`]
      })))
})
