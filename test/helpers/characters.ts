// Any character, for strings of fast-check, whose own `unit: 'binary'` fills a table of 90 MB per process.
import fc from 'fast-check'

const surrogates = 0x800
const firstSurrogate = 0xd800

/** Any code point that isn't a surrogate. */
export const anyCharacter = fc.integer({ min: 0, max: 0x10ffff - surrogates }).map(
  (n) => String.fromCodePoint(n < firstSurrogate ? n : n + surrogates),
  (text) => {
    const point = (text as string).codePointAt(0)!
    if (String.fromCodePoint(point) !== text) throw new Error('not one character')
    return point < firstSurrogate ? point : point - surrogates
  },
)
