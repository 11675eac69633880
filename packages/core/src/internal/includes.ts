/** Up to this length the platform's own search is fast whatever the text; beyond it repetitive texts take n × m steps. */
const shortPart = 16

/** For each prefix of `part`: the length of its longest proper prefix that is also its suffix. */
const borders = (part: string): Uint32Array => {
  const table = new Uint32Array(part.length)
  for (let at = 1, length = 0; at < part.length;) {
    if (part.charCodeAt(at) === part.charCodeAt(length)) table[at++] = ++length
    else if (length > 0) length = table[length - 1] ?? 0
    else at += 1
  }
  return table
}

/** Whether `text` holds `part`, in time linear in both, whatever they are (Knuth, Morris and Pratt). */
export const includes = (text: string, part: string): boolean => {
  if (part.length <= shortPart || part.length > text.length) return text.includes(part)
  const table = borders(part)
  const head = part.slice(0, shortPart)
  for (let at = 0, length = 0; at < text.length;) {
    if (length === 0) {
      at = text.indexOf(head, at)
      if (at < 0) return false
    }
    if (text.charCodeAt(at) === part.charCodeAt(length)) {
      at += 1
      length += 1
      if (length === part.length) return true
    } else length = table[length - 1] ?? 0
  }
  return false
}
