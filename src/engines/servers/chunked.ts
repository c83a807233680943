// Decodes the chunked transfer coding of a server's answer (RFC 9112, 7.1). Extensions and trailers are dropped.
import { MalformedAnswer } from './answer-head.ts'

export type Chunked = {
  /**
   * Calls `deliver` with each part of the body. Returns where the octets after the last chunk begin, or -1 if it has
   * not come yet. A part is valid as long as the octets are.
   */
  read(octets: Buffer, deliver: (part: Buffer) => void): number
}

const [cr, lf] = [13, 10]
// A size is at most 13 hexadecimal digits, so the rest of a line is an extension.
const longestLine = 4096
const longestTrailers = 16 << 10
const size = /^([\da-fA-F]{1,13})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/
const trailer = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/

type State = 'size' | 'data' | 'break' | 'trailers' | 'done'

export function createChunked(): Chunked {
  let state: State = 'size'
  let left = 0
  let trailers = 0
  // The begin of a line whose end has not come yet.
  let held = ''

  /** The line from there on, without its break; null if its end has not come. `next` is where the next one begins. */
  let next = 0
  function line(octets: Buffer, at: number): string | null {
    const end = octets.indexOf(lf, at)
    const until = end < 0 ? octets.length : end
    if (held.length + until - at > longestLine) throw new MalformedAnswer('a line between chunks is too long')
    held += octets.toString('latin1', at, until)
    if (end < 0) return null
    if (held.charCodeAt(held.length - 1) !== cr) throw new MalformedAnswer('a line between chunks ends without CR')
    const text = held.slice(0, -1)
    held = ''
    next = end + 1
    return text
  }

  return {
    read(octets, deliver) {
      let at = 0
      while (at < octets.length) {
        if (state === 'data') {
          const end = Math.min(octets.length, at + left)
          deliver(at === 0 && end === octets.length ? octets : octets.subarray(at, end))
          left -= end - at
          at = end
          if (left === 0) state = 'break'
          continue
        }
        const text = line(octets, at)
        if (text === null) return -1
        at = next
        if (state === 'size') {
          const digits = size.exec(text)?.[1]
          if (digits === undefined) throw new MalformedAnswer('a chunk has no size')
          left = Number.parseInt(digits, 16)
          state = left === 0 ? 'trailers' : 'data'
        } else if (state === 'break') {
          if (text !== '') throw new MalformedAnswer('a chunk is longer than its size')
          state = 'size'
        } else if (text === '') {
          state = 'done'
          return at
        } else {
          trailers += text.length
          if (trailers > longestTrailers || !trailer.test(text)) throw new MalformedAnswer('the trailers are malformed')
        }
      }
      return -1
    },
  }
}
