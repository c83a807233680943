// Lines that programs print, as a log keeps them: without a terminal's escapes and without secrets, cut at a length.

export const maxLineLength = 8_000
// Shorter values would mask large parts of a log, and are not real secrets.
const minSecretLength = 4
// Characters of a line that are compared with secrets. Only lines and secrets made for each other need more.
const maxCompared = 20 * maxLineLength

// Not Node's stripVTControlCharacters: it looks for the end of each `ESC ]` through the whole line, which a program can
// make of nothing else.
const escapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]/g

/**
 * Hands out the lines of a text until one isn't kept, and the rest of them in one piece: a program that prints empty lines
 * would cost a second of CPU per megabyte. Returns what follows the last line.
 */
export function takeLines(
  text: string,
  keep: (line: string) => boolean,
  drop: (lines: string) => void = () => {},
): string {
  const end = text.lastIndexOf('\n') + 1
  for (let at = 0; at < end; ) {
    const next = text.indexOf('\n', at) + 1
    const isKept = keep(text.slice(at, next - 1))
    at = next
    if (isKept || at === end) continue
    drop(text.slice(at, end))
    break
  }
  return text.slice(end)
}

/** Returns what makes a line ready for a log. Of a secret with several lines each one is masked. */
export function createLineCleaner(secrets: readonly string[]): (text: string) => string {
  const mask = createMask(secrets)
  return (text) => {
    // What a terminal would overwrite goes too, and NUL, which PostgreSQL cannot store.
    const shown = text.slice(text.lastIndexOf('\r') + 1)
    const line = mask(shown.replace(escapes, '').replaceAll('\0', ''))
    // A cut may go through a character of two halves, of which PostgreSQL stores none alone.
    return line.toWellFormed()
  }
}

/**
 * Masks and cuts. Many secrets cost hardly more than one: they are sorted, and found by halving. Where that takes too long
 * after all, the rest of the line is masked.
 */
function createMask(secrets: readonly string[]): (line: string) => string {
  const parts = secrets.flatMap((secret) => [secret, ...secret.split('\n')]).map((part) => part.trim())
  // The begin of a longer one is enough: what follows it is cut.
  const begins = parts.filter(({ length }) => length >= minSecretLength).map((part) => part.slice(0, maxLineLength))
  const sorted = [...new Set(begins)].sort((a, b) => (a < b ? -1 : 1))
  const heads = new Set(sorted.map((part) => part.slice(0, minSecretLength)))
  /** By index, the longest other one that it begins with; -1 if there is none. */
  const shorter: number[] = []
  for (let i = 0; i < sorted.length; i++) {
    let at = i - 1
    while (at >= 0 && !sorted[i]!.startsWith(sorted[at]!)) at = shorter[at]!
    shorter.push(at)
  }

  /** The length of the longest secret that the text begins with, and how much had to be compared. */
  function findIn(text: string): { length: number; compared: number } {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sorted[middle]! <= text) low = middle + 1
      else high = middle
    }
    // Every secret that the text begins with is the last one before the text in order, or one that this begins with.
    let at = low - 1
    const common = at < 0 ? 0 : commonLength(sorted[at]!, text)
    while (at >= 0 && sorted[at]!.length > common) at = shorter[at]!
    return { length: at < 0 ? 0 : sorted[at]!.length, compared: common }
  }

  return (line) => {
    // Where a secret begins before the cut, so much of it can be seen.
    const seen = line.slice(0, 2 * maxLineLength)
    let masked = ''
    let done = 0
    let compared = 0
    for (let i = 0; i < Math.min(seen.length, maxLineLength) && heads.size > 0; i++) {
      if (!heads.has(seen.slice(i, i + minSecretLength))) continue
      const found = findIn(seen.slice(i))
      compared += found.compared
      const isTooMuch = compared > maxCompared
      if (found.length === 0 && !isTooMuch) continue
      // One that overlaps the one before is hidden with it.
      if (i >= done) masked += `${seen.slice(done, i)}***`
      if (isTooMuch) return masked
      done = Math.max(done, i + found.length)
    }
    return `${masked}${seen.slice(done, maxLineLength)}${line.length > maxLineLength ? '…' : ''}`
  }
}

function commonLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length)
  let length = 0
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}
