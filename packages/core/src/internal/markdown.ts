/** A labelled line of a tool's text; the labels are stable, users' prompts rely on them (SPEC "Texts"). */
export const line = (label: string, text: string): string => `**${label}:** ${text}`

/** At most `chars` UTF-16 units, never half a character. */
export const cut = (text: string, chars: number): string => {
  if (text.length <= chars) return text
  const end = /[\uD800-\uDBFF]/.test(text.charAt(chars - 1)) ? chars - 1 : chars
  return text.slice(0, end)
}

const controls = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}]/gu

const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Foreign text with its control characters made visible, so that none of them reaches a terminal or a parser. */
export const printable = (text: string): string => text.replace(/\r\n/g, "\n").replace(controls, escape)

/** Foreign text on one line. */
export const oneLine = (text: string): string =>
  printable(text).replace(/\s+/g, (run) => run.includes("\n") ? " " : run).trim()

/** A name inside a sentence. */
export const inline = (name: string): string => cut(oneLine(name), 200)

/** Foreign text in a fence that it cannot close: one backtick more than its longest run. */
export const fence = (text: string): string => {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2)
  const marks = "`".repeat(longest + 1)
  return `${marks}${/^\s*[[{]/.test(text) ? "json" : ""}\n${printable(text)}\n${marks}`
}
