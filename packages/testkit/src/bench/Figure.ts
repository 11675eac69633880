import Table from "cli-table3"

/** One measured number, and what it must stay under or above. */
export interface Figure {
  readonly scenario: string
  readonly name: string
  readonly value: number
  readonly unit: "×" | "ms" | "%" | "/s" | "MB" | "µs" | ""
  readonly atMost?: number
  readonly atLeast?: number
  /** where it comes from, for a reader of the JSON */
  readonly note?: string
}

export const holds = ({ atLeast, atMost, value }: Figure): boolean =>
  Number.isFinite(value) && (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast)

export const isBounded = ({ atLeast, atMost }: Figure): boolean => atMost !== undefined || atLeast !== undefined

export const show = (value: number): string =>
  Math.abs(value) >= 1_000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))

export const shown = ({ unit, value }: Figure): string =>
  `${show(value)}${unit === "" || unit === "×" ? unit : ` ${unit}`}`

export const boundOf = ({ atLeast, atMost, unit }: Figure): string =>
  atMost !== undefined
    ? `≤ ${show(atMost)} ${unit}`.trim()
    : atLeast !== undefined
    ? `≥ ${show(atLeast)} ${unit}`.trim()
    : ""

const verdictOf = (figure: Figure): string => !isBounded(figure) ? "" : holds(figure) ? "ok" : "BROKEN"

export const tableOf = (figures: ReadonlyArray<Figure>): string => {
  const table = new Table({ head: ["scenario", "figure", "value", "bound", ""], style: { head: [], border: [] } })
  for (const figure of figures) {
    table.push([figure.scenario, figure.name, shown(figure), boundOf(figure), verdictOf(figure)])
  }
  return table.toString()
}
