// The known name that a misspelt one was probably meant to be.

/** How many letters have to be added, left out, replaced, or swapped with the next one. */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    const above = rows[i - 1]!
    for (let j = 1; j <= other.length; j++) {
      const replaced = above[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1)
      const swapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      row.push(Math.min(replaced, above[j]! + 1, row[j - 1]! + 1, swapped ? rows[i - 2]![j - 2]! + 1 : replaced))
    }
    rows.push(row)
  }
  return rows[one.length]![other.length]!
}

// Longer than every name there is.
const longestName = 64

/** Null if none is near: at most every third letter differs. */
export function nearest(name: string, known: readonly string[]): string | null {
  if (name.length > longestName) return null
  const [best] = known
    .map((candidate) => ({ candidate, away: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, away }) => away <= Math.max(1, Math.floor(candidate.length / 3)))
    .sort((a, b) => a.away - b.away)
  return best?.candidate ?? null
}
