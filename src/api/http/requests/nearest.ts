// Suggests the known name that a misspelled one probably means.

/** The edit distance, counting a swap of neighbors as one edit. */
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

/** Null if none is close: at most every third letter differs. */
export function nearest(name: string, known: readonly string[]): string | null {
  const allowed = (candidate: string) => Math.max(1, Math.floor(candidate.length / 3))
  const [best] = known
    // Names that differ in length alone are skipped: callers may send thousands of long names.
    .filter((candidate) => Math.abs(name.length - candidate.length) <= allowed(candidate))
    .map((candidate) => ({ candidate, away: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, away }) => away <= allowed(candidate))
    .sort((a, b) => a.away - b.away)
  return best?.candidate ?? null
}
