import spawn from "cross-spawn"
import { setTimeout as sleep } from "node:timers/promises"

/** A child that leads its own process group (POSIX), or the root of a process tree (Windows). */
export interface ProcessTree {
  readonly isAlive: () => boolean
  readonly end: () => void
  readonly kill: () => void
}

const signal = (target: number, name: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(target, name)
  } catch {
    return false
  }
}

/** `taskkill` without `/F` asks console programs in vain, so that on Windows `end` and `kill` are one. */
const taskkill = (pid: number) => () => {
  spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on("error", () => {})
}

/** The tree below `pid`, which was started with `detached: true` on POSIX. */
export const processTree = (pid: number, platform: NodeJS.Platform = process.platform): ProcessTree =>
  platform === "win32"
    ? { isAlive: () => signal(pid, 0), end: taskkill(pid), kill: taskkill(pid) }
    : {
      isAlive: () => signal(-pid, 0),
      end: () => void signal(-pid, "SIGTERM"),
      kill: () => void signal(-pid, "SIGKILL")
    }

const pause = 20

/** Waits until the tree is gone, at most `millis`; tells whether it is. */
export const gone = async (tree: ProcessTree, millis: number): Promise<boolean> => {
  for (let waited = 0; tree.isAlive(); waited += pause) {
    if (waited >= millis) return false
    await sleep(pause)
  }
  return true
}
