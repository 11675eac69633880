import type { ParameterPropertySpec, ParameterSchemaSpec, ValueSchemaSpec } from "@deepseek-ai/dsh-tools"
import { isJsonObject, type Json, type JsonObject } from "@gcszhn/mcp-sentinel-core/Json"

const stringsOf = (value: Json | undefined): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : []

const described = (schema: JsonObject): { description?: string } =>
  typeof schema.description === "string" ? { description: schema.description } : {}

const valueOf = (schema: JsonObject): ValueSchemaSpec => {
  const note = described(schema)
  switch (schema.type) {
    case "string": {
      const choices = stringsOf(schema.enum)
      return choices.length > 0 ? { type: "string", enum: choices, ...note } : { type: "string", ...note }
    }
    case "number":
    case "integer":
    case "boolean":
      return { type: schema.type, ...note }
    case "array":
      return { type: "array", items: isJsonObject(schema.items) ? valueOf(schema.items) : { type: "json" }, ...note }
    default:
      return { type: "json", ...note }
  }
}

/**
 * A tool's input schema in dsh's parameter language. Objects and mixed types become `json`, so that a condition or
 * arguments written as a JSON string reach the tool, which understands them.
 */
export const parametersOf = (inputSchema: JsonObject): ParameterSchemaSpec => {
  const required = stringsOf(inputSchema.required)
  const properties = isJsonObject(inputSchema.properties) ? Object.entries(inputSchema.properties) : []
  return Object.fromEntries(properties.map(([name, schema]): [string, ParameterPropertySpec] => {
    const value: ValueSchemaSpec = isJsonObject(schema) ? valueOf(schema) : { type: "json" }
    return [name, required.includes(name) ? { ...value, required: true } : value]
  }))
}
