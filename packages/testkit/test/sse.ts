import * as Schema from "effect/Schema"

const Data = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))

/** The events of a `text/event-stream` whose data is JSON. */
export const eventsOf = (body: string) =>
  body.split("\n\n").filter((block) => block !== "").map((block) => {
    const field = (name: string) =>
      block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ""
    return { event: field("event"), data: Schema.decodeUnknownSync(Data)(field("data")) }
  })
