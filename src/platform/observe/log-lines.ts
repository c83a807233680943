// Cleans lines that programs print for a log: removes terminal escapes, masks secrets, and limits the length.

export const maxLineLength = 8_000
// Masking shorter values would hide large parts of a log, and they aren't real secrets.
const minSecretLength = 4
// How many characters of a line are compared with secrets. Only lines and secrets crafted for each other need more.
const maxCompared = 20 * maxLineLength

// Not Node's stripVTControlCharacters: for each `ESC ]` it searches the rest of the line, and a program can print a line
// of nothing else.
const escapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches them.
  /\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]/g

/**
 * Calls `keep` for each line until it returns false, then passes the rest to `drop` in one piece: empty lines would
 * otherwise cost a second of CPU time per megabyte. Returns what follows the last line.
 */
export function consumeLines(
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

/** Returns a function that cleans a line. If a secret has several lines, each of them is masked. */
export function createLineCleaner(secrets: readonly string[]): (text: string) => string {
  const mask = createMask(secrets)
  return (text) => {
    // Drops what a terminal would overwrite, and NUL, which PostgreSQL can't store.
    const shown = text.slice(text.lastIndexOf('\r') + 1)
    const line = mask(shown.replace(escapes, '').replaceAll('\0', ''))
    // The cut may separate a surrogate pair, and PostgreSQL can't store half of one.
    return line.toWellFormed()
  }
}

/**
 * Masks and cuts lines. Many secrets cost hardly more than one, because they are sorted and found by binary search. If
 * that still takes too long, the rest of the line is masked.
 */
function createMask(secrets: readonly string[]): (line: string) => string {
  const parts = secrets.flatMap((secret) => [secret, ...secret.split('\n')]).map((part) => part.trim())
  // The start of a longer secret is enough, because the rest is cut off.
  const begins = parts.filter(({ length }) => length >= minSecretLength).map((part) => part.slice(0, maxLineLength))
  const sorted = [...new Set(begins)].sort((a, b) => (a < b ? -1 : 1))
  const heads = new Set(sorted.map((part) => part.slice(0, minSecretLength)))
  /** For each index, that of the longest other secret that is its prefix; -1 if there is none. */
  const shorter: number[] = []
  for (let i = 0; i < sorted.length; i++) {
    let at = i - 1
    while (at >= 0 && !sorted[i]!.startsWith(sorted[at]!)) at = shorter[at]!
    shorter.push(at)
  }

  /** The length of the longest secret at the start of the text, and how many characters were compared. */
  function findIn(text: string): { length: number; compared: number } {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sorted[middle]! <= text) low = middle + 1
      else high = middle
    }
    // Every secret at the start of the text is either the last one before the text in order, or a prefix of that one.
    let at = low - 1
    const common = at < 0 ? 0 : commonLength(sorted[at]!, text)
    while (at >= 0 && sorted[at]!.length > common) at = shorter[at]!
    return { length: at < 0 ? 0 : sorted[at]!.length, compared: common }
  }

  return (line) => {
    // A secret that starts before the cut may reach beyond it.
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
      // If it overlaps the previous one, both share one mask.
      if (i >= done) masked += `${seen.slice(done, i)}***`
      if (isTooMuch) return masked
      done = Math.max(done, i + found.length)
    }
    return `${masked}${seen.slice(done, maxLineLength)}${line.length > maxLineLength ? '…' : ''}`
  }
}

function commonLength(a: string, b: string): number {
  const max = Math.min(a.length, b.length)
  let length = 0
  while (length < max && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}
