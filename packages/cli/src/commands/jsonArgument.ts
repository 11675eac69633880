import { Refused } from "@gcszhn/mcp-sentinel-core/Errors"
import * as Either from "effect/Either"

/** An argument of the command line that is JSON text. */
export const jsonArgument = (name: string, text: string): Either.Either<unknown, Refused> =>
  Either.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) =>
      new Refused({
        message: `${name} is not JSON: ${error instanceof Error ? error.message : String(error)}`,
        field: name
      })
  })
