import { assert, it } from "@effect/vitest"
import { publicName, refusalOf } from "../src/OpencodeRules.js"

it("names a tool as opencode does", () => {
  assert.strictEqual(publicName({ server: "my jobs.v1", tool: "sleep" }), "my_jobs_v1_sleep")
  assert.strictEqual(publicName({ server: "über", tool: "job-status" }), "_ber_job-status")
})

it("names the rule that denies, and tells a user's no with its reason", () => {
  const ruleset = [
    { permission: "*", pattern: "*", action: "allow" },
    { permission: "jobs_*", pattern: "*", action: "deny" }
  ]
  const denied = refusalOf("jobs_status", Object.assign(new Error("denied"), { ruleset }))
  assert.include(denied.message, `"jobs_*": "deny"`)
  const corrected = refusalOf("jobs_status", Object.assign(new Error("no"), { feedback: "use the other one" }))
  assert.include(corrected.message, "use the other one")
  assert.include(refusalOf("jobs_status", new Error("rejected")).message, "did not allow jobs_status")
})
