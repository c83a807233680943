// Makes untrusted text safe for a terminal: it can't move the cursor, change colours or reverse the writing direction.

// Control characters, and invisible ones that change how text is shown.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the search is for these.
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g
const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** One line, with unsafe characters escaped. */
export function clean(text: unknown): string {
  return String(text ?? '')
    .toWellFormed()
    .replace(unsafe, (char) => (char === '\t' ? ' ' : escaped(char)))
}

/** The same for several lines. */
export function cleanLines(text: string): string {
  return text.split(/\r?\n/).map(clean).join('\n')
}

// Colour codes of terminals.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the search is for the escape character.
const colours = /\u001b\[[0-9;:]*m/g

/** A line of a build log: without colours, other unsafe characters escaped. */
export function cleanLog(text: string): string {
  return clean(text.replace(colours, ''))
}

/** Escapes the unsafe characters that JSON leaves as they are; the value stays the same. */
export function cleanJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(unsafe, (char) => (char === '\n' ? char : escaped(char)))
}

/** Columns as wide as their widest cell; the last one isn't padded. */
export function table(heads: string[], rows: unknown[][]): string {
  const cells = [heads, ...rows.map((row) => row.map((cell) => clean(cell ?? '-')))]
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** `1 file`, `2 files`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

const units = ['B', 'KB', 'MB', 'GB'] as const

export function size(bytes: number): string {
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  const figure = bytes / 1000 ** step
  return `${figure < 10 && step > 0 ? figure.toFixed(1) : Math.round(figure)} ${units[step]}`
}

/** A time as `2026-11-14 09:31`, UTC. */
export function time(iso: string | null | undefined): string {
  return iso ? iso.slice(0, 16).replace('T', ' ') : '-'
}
