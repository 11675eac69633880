/** How many letters must be added, removed or replaced to make one word of the other. */
const distance = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, position) => position)
  for (const [i, letter] of [...left].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...right].entries()) {
      next.push(Math.min((row[j] ?? 0) + (letter === other ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** The known word that was probably meant: one wrong letter in a short word, two in a longer one. */
export const nearest = <Word extends string>(word: string, known: ReadonlyArray<Word>): Word | undefined =>
  word.length > 20
    ? undefined
    : known
      .map((candidate) => ({ candidate, far: distance(word, candidate) }))
      .filter(({ candidate, far }) => far <= Math.min(2, Math.floor(candidate.length / 2)))
      .toSorted((a, b) => a.far - b.far)[0]?.candidate
