import type { HostBox } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import { processesIn } from "@gcszhn/mcp-sentinel-testkit/HostBox"
import type { JobScript, ScriptedTool } from "@gcszhn/mcp-sentinel-testkit/JobScript"
import { jobServerProgram, stdioJobs } from "@gcszhn/mcp-sentinel-testkit/JobServer"
import * as Effect from "effect/Effect"

const job = (looks: number): ScriptedTool => ({
  annotations: { readOnlyHint: true },
  steps: [
    ...(looks > 1 ? [{ repeat: looks - 1, json: { state: "running" } }] : []),
    { json: { state: looks > 0 ? "done" : "running" } }
  ]
})

/** The script of a server with one status tool for each job: at that many looks the job is done, at 0 never. */
export const jobScript = (looks: Readonly<Record<string, number>>): JobScript => ({
  tools: Object.fromEntries(Object.entries(looks).map(([name, count]) => [name, job(count)]))
})

/** That server, over stdio. */
export const jobs = (looks: Readonly<Record<string, number>>) => stdioJobs(jobScript(looks))

/** The job servers that run in a box: the harness's own, and the sentinel's. */
export const jobServersIn = (box: HostBox) =>
  Effect.map(processesIn(box), (all) => all.filter(({ command }) => command.includes(jobServerProgram)))
