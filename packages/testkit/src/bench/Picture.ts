import { boundOf, type Figure, holds, isBounded, shown } from "./Figure.js"

const row = 26
const left = 330
const scale = 250
const width = 860

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** How much of what is allowed a figure takes: 1 is the bound. */
const share = ({ atLeast, atMost, value }: Figure): number =>
  atMost !== undefined ? value / atMost : atLeast !== undefined ? atLeast / value : 0

const line = (figure: Figure, index: number): string => {
  const y = 58 + index * row
  const length = Math.max(2, Math.min(1.4, share(figure)) * scale)
  return `<text class="name" x="${left - 10}" y="${y + 13}">${escaped(`${figure.scenario}: ${figure.name}`)}</text>
<rect class="${holds(figure) ? "ok" : "broken"}" x="${left}" y="${y}" width="${length.toFixed(1)}" height="16" rx="2"/>
<text x="${left + Math.round(scale * 1.4) + 12}" y="${y + 13}">${
    escaped(`${shown(figure)} (${boundOf(figure)})`)
  }</text>`
}

const style = `text{font:13px system-ui,sans-serif;fill:#24292f}.name{text-anchor:end}.title{font-weight:600}
.ok{fill:#2da44e}.broken{fill:#d1242f}.bound{stroke:#57606a;stroke-dasharray:4 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ok{fill:#3fb950}.broken{fill:#f85149}.bound{stroke:#9198a1}}`

/** The figures that have a bound, as shares of it; legible on light and dark. */
export const pictureOf = (figures: ReadonlyArray<Figure>): string => {
  const bounded = figures.filter(isBounded)
  const height = 70 + bounded.length * row
  const bound = left + scale
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Measured figures of mcp-sentinel as shares of their bounds">
<style>${style}</style>
<text class="title" x="16" y="24">mcp-sentinel: measured figures as shares of their bounds (shorter is better)</text>
<text x="${bound}" y="46" text-anchor="middle">bound</text>
<line class="bound" x1="${bound}" y1="50" x2="${bound}" y2="${height - 12}"/>
${bounded.map(line).join("\n")}
</svg>
`
}
