// A scripted MCP job server without dependencies, over stdio when run as a program. Plain JavaScript (checked by tsc),
// so that tests start it with any Node and no build. JobServer.ts has the script's types and the HTTP side.
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { pathToFileURL } from "node:url"

/** @typedef {import("./JobScript.js").JobScript} JobScript */
/** @typedef {import("./JobScript.js").Step} Step */
/** @typedef {import("./JobScript.js").TaskScript} TaskScript */
/** @typedef {import("./JobScript.js").TaskStage} TaskStage */
/** @typedef {import("./JobScript.js").JobEvent} JobEvent */
/** @typedef {import("./JobScript.js").Wire} Wire */
/** @typedef {import("./JobScript.js").Message} Message */

export const protocolVersion = "2025-11-25"

const tinyImage = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** @param {string} text */
const textResult = (text) => ({ content: [{ type: "text", text }] })

/** @param {Step} step @returns {unknown} */
const resultOf = (step) => {
  if (step.result !== undefined) return step.result
  if (step.isError !== undefined) return { ...textResult(step.isError), isError: true }
  if (step.bytes !== undefined) return textResult("x".repeat(step.bytes))
  if (step.image === true) return { content: [{ type: "image", data: tinyImage, mimeType: "image/png" }] }
  return textResult(step.text ?? JSON.stringify(step.json ?? null))
}

/**
 * The server behind a wire: answers messages by the script and reports what happens.
 * @param {JobScript} script
 * @param {(event: JobEvent) => void} report
 * @param {ReadonlyArray<JobEvent>} earlier what an earlier process of the same script reported
 */
export const makeJobServer = (script, report, earlier = []) => {
  /** @type {Map<string, number>} */
  const calls = new Map()
  for (const event of earlier) if (event.type === "call") calls.set(event.tool, (calls.get(event.tool) ?? 0) + 1)
  /** @type {Map<string, { polls: number, needs: number }>} */
  const jobs = new Map()
  let inFlight = 0

  /** @param {string} tool @returns {Step | undefined} */
  const nextStep = (tool) => {
    const spec = script.tools?.[tool]
    if (spec === undefined) return undefined
    const nth = calls.get(tool) ?? 0
    calls.set(tool, nth + 1)
    const steps = spec.steps.flatMap((step) => Array.from({ length: step.repeat ?? 1 }, () => step))
    return steps[Math.min(nth, steps.length - 1)]
  }

  /** @param {Record<string, unknown>} args @returns {Step} */
  const startJob = (args) => {
    const id = `job-${jobs.size + 1}`
    jobs.set(id, { polls: 0, needs: Number(args["polls"] ?? 3) })
    return { json: { id, status: "running" } }
  }

  /** @param {Record<string, unknown>} args @returns {Step} */
  const jobStatus = (args) => {
    const job = jobs.get(String(args["id"]))
    if (job === undefined) return { isError: `no job ${String(args["id"])}` }
    job.polls++
    const progress = Math.min(100, Math.round((100 * job.polls) / job.needs))
    return { json: { id: args["id"], status: progress === 100 ? "done" : "running", progress } }
  }

  /** @param {string} tool @param {Record<string, unknown>} args @returns {Step} */
  const stepFor = (tool, args) => {
    const step = nextStep(tool)
    if (step !== undefined) return step
    if (script.jobs === true && tool === "start_job") return startJob(args)
    if (script.jobs === true && tool === "get_status") return jobStatus(args)
    return { rpcError: { code: -32602, message: `Unknown tool: ${tool}` } }
  }

  const tools = [
    ...Object.entries(script.tools ?? {}).map(([name, spec]) => ({
      name,
      inputSchema: { type: "object" },
      ...(spec.task === undefined ? {} : { execution: { taskSupport: spec.task.support ?? "required" } }),
      ...(spec.annotations === undefined ? {} : { annotations: spec.annotations }),
      ...(spec.outputSchema === undefined ? {} : { outputSchema: spec.outputSchema })
    })),
    ...(script.jobs === true
      ? [
        { name: "start_job", description: "Starts a job that is done after `polls` looks", inputSchema: { type: "object" } },
        { name: "get_status", description: "The state of job `id`", inputSchema: { type: "object" } }
      ]
      : [])
  ]

  /** @param {unknown} cursor */
  const toolPage = (cursor) => {
    if (script.pageSize === undefined) return { tools }
    const from = script.stuckCursor === true ? 0 : Number(cursor ?? 0)
    const next = from + script.pageSize
    return {
      tools: tools.slice(from, next),
      ...(script.stuckCursor === true ? { nextCursor: "again" } : next < tools.length ? { nextCursor: String(next) } : {})
    }
  }

  /**
   * @param {Message} message
   * @param {Wire} wire
   */
  const call = async (message, wire) => {
    const { name = "", arguments: args = {}, task, _meta: meta } = message.params ?? {}
    const step = stepFor(name, args)
    const taskScript = script.tools?.[name]?.task
    inFlight++
    report({ type: "call", tool: name, args, inFlight, ...(task === undefined ? {} : { task: true }) })
    try {
      if (step.stderr !== undefined) process.stderr.write("e".repeat(step.stderr) + "\n")
      if (step.noise !== undefined) wire.noise(step.noise)
      await working(step, meta?.progressToken, wire)
      if (step.http !== undefined && await wire.fault(step.http)) return
      if (step.exit !== undefined) return wire.crash(step.exit)
      if (step.kill === true) return wire.crash("SIGKILL")
      if (step.hang === true) return
      if (taskScript !== undefined && step.rpcError === undefined && taskScript.ignored !== true) {
        return callTask(message, taskScript, wire)
      }
      report({ type: "answer", tool: name, at: performance.timeOrigin + performance.now() })
      wire.send(
        step.rpcError === undefined
          ? { jsonrpc: "2.0", id: message.id, result: resultOf(step) }
          : { jsonrpc: "2.0", id: message.id, error: step.rpcError }
      )
      if (step.toolsChanged === true) wire.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })
      if (step.thenExit !== undefined) setTimeout(() => wire.crash(step.thenExit ?? 0), 20)
    } finally {
      inFlight--
    }
  }

  /**
   * @param {Step} step
   * @param {unknown} progressToken
   * @param {Wire} wire
   */
  const working = async (step, progressToken, wire) => {
    const { delay = 0, progressEvery } = step
    if (progressEvery === undefined) return delay > 0 ? sleep(delay) : undefined
    for (let progress = 1; progress * progressEvery <= delay; progress++) {
      await sleep(progressEvery)
      if (progressToken !== undefined) {
        wire.send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress } })
      }
    }
  }

  const offersTasks = Object.values(script.tools ?? {}).some(({ task }) => task !== undefined)
  /** @type {Map<string, { script: TaskScript, created: number, cancelled: boolean, gets: number }>} */
  const tasks = new Map()

  /** @param {{ script: TaskScript, created: number }} task @returns {TaskStage} */
  const stageOf = ({ created, script: { stages } }) => {
    let until = created
    return stages.find(({ millis = 0 }) => performance.now() < (until += millis)) ?? stages.at(-1) ?? { status: "working" }
  }

  /** @param {string} taskId @param {{ script: TaskScript, created: number, cancelled: boolean }} task */
  const describeTask = (taskId, task) => {
    const { status, statusMessage } = stageOf(task)
    const now = new Date().toISOString()
    return {
      taskId,
      status: task.cancelled ? "cancelled" : status,
      ...(statusMessage === undefined ? {} : { statusMessage }),
      ttl: task.script.expires ?? null,
      createdAt: now,
      lastUpdatedAt: now,
      ...(task.script.pollInterval === undefined ? {} : { pollInterval: task.script.pollInterval })
    }
  }

  /** @param {Message} message @param {TaskScript} taskScript @param {Wire} wire */
  const callTask = (message, taskScript, wire) => {
    if (message.params?.task === undefined) {
      if (taskScript.support === "optional") {
        return wire.send({ jsonrpc: "2.0", id: message.id, result: textResult("carried out plainly") })
      }
      const error = { code: -32601, message: "the tool requires task augmentation" }
      return wire.send({ jsonrpc: "2.0", id: message.id, error })
    }
    const taskId = `task-${tasks.size + 1}`
    const task = { script: taskScript, created: performance.now(), cancelled: false, gets: 0 }
    tasks.set(taskId, task)
    const push = () =>
      wire.send({ jsonrpc: "2.0", method: "notifications/tasks/status", params: describeTask(taskId, task) })
    if (taskScript.push === "first") push()
    wire.send({ jsonrpc: "2.0", id: message.id, result: { task: describeTask(taskId, task) } })
    if (taskScript.push === undefined || taskScript.push === false) return
    let at = 0
    for (const { millis = 0 } of taskScript.stages.slice(0, -1)) setTimeout(push, at += millis)
  }

  /** @param {Message} message @param {Wire} wire */
  const aboutTask = async (message, wire) => {
    const { method = "", params: { taskId = "" } = {} } = message
    report({ type: "task", method, taskId })
    const task = tasks.get(taskId)
    /** @param {unknown} result */
    const reply = (result) => wire.send({ jsonrpc: "2.0", id: message.id, result })
    /** @param {{ code: number, message: string }} error */
    const refuse = (error) => wire.send({ jsonrpc: "2.0", id: message.id, error })
    const age = task === undefined ? 0 : performance.now() - task.created
    if (task === undefined || age > (task.script.expires ?? Infinity)) {
      return refuse({ code: -32602, message: "Failed to retrieve task: Task not found" })
    }
    if (method === "tasks/get" && task.gets++ < (task.script.hiccups ?? 0)) {
      return refuse({ code: -32603, message: "hiccup" })
    }
    if (method === "tasks/get") return reply(describeTask(taskId, task))
    if (method === "tasks/cancel") {
      task.cancelled = true
      return task.script.hangCancel === true ? undefined : reply(describeTask(taskId, task))
    }
    const { question, status } = stageOf(task)
    if (status === "input_required" && question !== undefined) {
      const requestedSchema = { type: "object", properties: { meaning: { type: "string" } } }
      const meta = { "io.modelcontextprotocol/related-task": { taskId } }
      wire.send({
        jsonrpc: "2.0",
        id: `question-${taskId}`,
        method: "elicitation/create",
        params: { message: question, requestedSchema, _meta: meta }
      })
    }
    // as the protocol has it, who asks too early waits
    while (!["completed", "failed"].includes(stageOf(task).status)) await sleep(50, undefined, { ref: false })
    const { result = {} } = stageOf(task)
    return result.rpcError === undefined ? reply(resultOf(result)) : refuse(result.rpcError)
  }

  const initialize = () => ({
    protocolVersion: script.start?.protocolVersion ?? protocolVersion,
    capabilities: {
      tools: { listChanged: script.silentTools !== true },
      ...(offersTasks ? { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } : {})
    },
    serverInfo: { name: script.start?.name ?? "job-server", version: "1.0.0" }
  })

  /**
   * @param {Message} message
   * @param {Wire} wire
   */
  const receive = async (message, wire) => {
    if (message.method === "tools/call") return call(message, wire)
    if (message.method?.startsWith("tasks/") === true) return aboutTask(message, wire)
    if (message.method === "notifications/cancelled") return report({ type: "cancelled" })
    if (message.id === undefined) return
    /** @param {unknown} result */
    const reply = (result) => wire.send({ jsonrpc: "2.0", id: message.id, result })
    if (message.method === "initialize") {
      report({ type: "initialize", client: String(message.params?.clientInfo?.name) })
      if (script.start?.hang === true) return
      if (script.start?.delay !== undefined) await sleep(script.start.delay)
      return reply(initialize())
    }
    if (message.method === "tools/list") {
      report({ type: "list" })
      return script.hangList === true ? undefined : reply(toolPage(message.params?.cursor))
    }
    if (message.method === "ping") return script.hangPing === true ? undefined : reply({})
    wire.send({ jsonrpc: "2.0", id: message.id, error: { code: -32601, message: `Method not found: ${message.method}` } })
  }

  return { receive }
}

/** @param {string} path @returns {ReadonlyArray<JobEvent>} */
export const readEvents = (path) =>
  existsSync(path)
    ? readFileSync(path, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))
    : []

const runStdio = () => {
  /** @type {JobScript} */
  const script = JSON.parse(process.argv[2] ?? "{}")
  const log = process.argv[3]
  /** @param {JobEvent} event */
  const report = (event) => {
    if (log !== undefined) appendFileSync(log, JSON.stringify(event) + "\n")
  }
  const server = makeJobServer(script, report, log === undefined ? [] : readEvents(log))
  report({ type: "start", pid: process.pid, env: Object.keys(process.env).toSorted() })
  const { start = {} } = script

  process.on("SIGTERM", () => {
    report({ type: "sigterm" })
    if (script.ignoreSigterm !== true) process.exit(0)
  })
  /** @type {Wire} */
  const wire = {
    send: (message) => void process.stdout.write(JSON.stringify(message) + "\n"),
    noise: (text) => void process.stdout.write(text + "\n"),
    crash: (how) => typeof how === "number" ? process.exit(how) : void process.kill(process.pid, how),
    fault: async () => false
  }
  if (start.stderr !== undefined) process.stderr.write(start.stderr + "\n")
  if (start.bom === true) process.stdout.write("\uFEFF")
  for (const line of start.banner ?? []) wire.noise(line)
  if (start.exit !== undefined) {
    process.exitCode = start.exit
    return
  }
  if (script.ignoreEof === true) setInterval(() => {}, 60_000)

  let rest = ""
  process.stdin.setEncoding("utf8")
  process.stdin.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) if (line.trim() !== "") void server.receive(JSON.parse(line), wire)
  })
  process.stdin.on("end", () => {
    report({ type: "eof" })
    if (script.ignoreEof !== true) process.exit(0)
  })
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) runStdio()
