import { assert, it } from "@effect/vitest"
import { isOneShot } from "../src/oneShot.js"

it("knows the commands that end with the turn, past opencode's own options", () => {
  for (const words of [["run", "x"], ["--print-logs", "run"], ["--log-level", "WARN", "run"], ["github", "run"]]) {
    assert.isTrue(isOneShot(words), words.join(" "))
  }
  for (const words of [[], ["serve"], ["serve", "--port", "run"], ["--log-level", "run"], ["./run-folder"], ["web"]]) {
    assert.isFalse(isOneShot(words), words.join(" "))
  }
})
