// Shared by the reports: tables in columns, and one line per limit.

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median of ratios measured in the same round. */
export function medianRatio(above: number[], below: number[]): number {
  return median(above.map((value, round) => value / below[round]!))
}

/** The first row is the heading; the first column is text, the others are numbers. */
export function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '))
    .join('\n')
}

export function verdict(met: boolean, bound: string, measured: string): string {
  return `${met ? 'met    ' : 'missed '} ${bound}: ${measured}`
}

/** The quantile of sorted or unsorted values; 0.5 is the median. */
export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}
