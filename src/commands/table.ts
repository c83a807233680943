// A table for the terminal: columns as wide as their longest cell.
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  const line = (row: readonly string[]) => row.map((text, column) => text.padEnd(widths[column]!)).join('  ')
  return all.map((row) => line(row).trimEnd()).join('\n')
}
