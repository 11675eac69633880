import { assert, it } from "@effect/vitest"
import { parametersOf } from "../src/dsl.js"

it("keeps scalars and their choices, and opens everything else", () => {
  assert.deepStrictEqual(
    parametersOf({
      type: "object",
      required: ["server", "until"],
      properties: {
        server: { type: "string", description: "server name" },
        action: { type: "string", enum: ["status", "list"] },
        interval: { type: "number", minimum: 0 },
        max_errors: { type: "integer" },
        until: { type: "object", description: "condition", properties: { path: { type: "string" } } },
        value: {},
        either: { type: ["string", "number"] },
        ids: { type: "array", items: { type: "string" } }
      }
    }),
    {
      server: { type: "string", description: "server name", required: true },
      action: { type: "string", enum: ["status", "list"] },
      interval: { type: "number" },
      max_errors: { type: "integer" },
      until: { type: "json", description: "condition", required: true },
      value: { type: "json" },
      either: { type: "json" },
      ids: { type: "array", items: { type: "string" } }
    }
  )
})

it("takes a tool without parameters", () => assert.deepStrictEqual(parametersOf({ type: "object" }), {}))
