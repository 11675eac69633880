import { spawn } from "node:child_process"
import { constants } from "node:os"
import { pnpm, root } from "./workspace.mjs"

const children = new Set()

let interruptedBy

const exitCodeOf = (signal) => 128 + (constants.signals[signal] ?? 0)

const codeOf = (code, signal) => code ?? exitCodeOf(signal)

const npx = process.platform === "win32" ? "npx.cmd" : "npx"

/**
 * The terminal sends Ctrl-C to the whole process group: this process only waits for its children to end, and starts no
 * other. A signal sent to this process alone is handed on.
 */
export const passSignalsThrough = () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      interruptedBy = signal
      if (signal === "SIGINT") return
      for (const child of children) child.kill(signal)
    })
  }
}

/** The exit code that tells of the signal which ended the command, if one did. */
export const interruptedCode = () => interruptedBy === undefined ? undefined : exitCodeOf(interruptedBy)

const start = (command, args, { env, ...options }) => {
  if (interruptedBy !== undefined) throw new Error(`interrupted by ${interruptedBy}`)
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    shell: process.platform === "win32" && command === npx,
    ...options
  })
  children.add(child)
  child.once("close", () => children.delete(child))
  return child
}

/** Runs with its output streamed; resolves to the exit code, 128 + n when a signal ended it. */
export const run = (command, args, options = {}) =>
  new Promise((resolve, reject) => {
    const child = start(command, args, { ...options, stdio: "inherit" })
    child.once("error", reject)
    child.once("close", (code, signal) => resolve(codeOf(code, signal)))
  })

/** Runs with its output kept: { code, output, stdout }; `output` is both streams as they came. */
export const capture = (command, args, options = {}) =>
  new Promise((resolve, reject) => {
    const child = start(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    let stdout = ""
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text
      output += text
    })
    child.stderr.setEncoding("utf8").on("data", (text) => {
      output += text
    })
    child.once("error", reject)
    child.once("close", (code, signal) => resolve({ code: codeOf(code, signal), output, stdout }))
  })

/** pnpm at the pinned version, through npx: a fresh machine has npm only. */
export const pnpmCommand = (...args) => [npx, ["--yes", pnpm, ...args]]

/** A tool of the root's devDependencies, on this Node and whatever the PATH holds. */
export const nodeCommand = (script, ...args) => [process.execPath, [`${root}/node_modules/${script}`, ...args]]
