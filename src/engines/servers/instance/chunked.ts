// Decodes the chunked transfer coding of a server's answer (RFC 9112, 7.1). Extensions and trailers are dropped.
import { MalformedAnswer } from './answer-head.ts'

export type Chunked = {
  /**
   * Calls `deliver` at most once, with what of the body is in the octets, and overwrites them for it. Returns where the
   * octets after the last chunk begin, or -1 if it has not come yet. The part is valid as long as the octets are.
   */
  read(octets: Buffer, deliver: (part: Buffer) => void): number
}

const [tab, lf, cr, space, semicolon] = [9, 10, 13, 32, 59]
const maxSizeDigits = 13
// So the rest of a line is an extension.
const maxLineLength = 4096
const maxTrailersLength = 16 << 10
// Below this, a loop is faster than a call.
const smallBytes = 32
const trailer = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/

type State = 'digits' | 'space' | 'extension' | 'line feed' | 'data' | 'break' | 'break feed' | 'trailers' | 'done'

/** The value of a hexadecimal digit; -1 for any other octet. */
function digitOf(octet: number): number {
  if (octet >= 48 && octet <= 57) return octet - 48
  const letter = octet | 0x20
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

/** Works octet by octet: a server may send millions of chunks of one octet, and a string for each costs a hundred times as much. */
export function createChunked(): Chunked {
  let state: State = 'digits'
  let left = 0
  let digits = 0
  let lineBytes = 0
  let trailers = 0
  // The begin of a trailer whose end has not come yet.
  let held = ''

  function beginSize(): void {
    state = 'digits'
    left = digits = lineBytes = 0
  }

  /** Of the line with a chunk's size. */
  function readSize(octet: number): void {
    if (++lineBytes > maxLineLength) throw new MalformedAnswer('a line between chunks is too long')
    if (state === 'line feed') {
      if (octet !== lf) throw new MalformedAnswer('a line between chunks ends without CR')
      state = left === 0 ? 'trailers' : 'data'
      return
    }
    if (state === 'digits') {
      const digit = digitOf(octet)
      if (digit >= 0) {
        if (++digits > maxSizeDigits) throw new MalformedAnswer('a chunk has no size')
        left = left * 16 + digit
        return
      }
      if (digits === 0) throw new MalformedAnswer('a chunk has no size')
    }
    if (octet === cr) state = 'line feed'
    else if (state === 'extension') {
      if (octet !== tab && (octet < space || octet === 0x7f)) throw new MalformedAnswer('a chunk has no size')
    } else if (octet === semicolon) state = 'extension'
    else if (octet === tab || octet === space) state = 'space'
    else throw new MalformedAnswer('a chunk has no size')
  }

  /** Reads a line with nothing but a size, all of it, and returns where the chunk begins; the same place for any other. */
  function readShortSize(octets: Buffer, at: number): number {
    let size = 0
    let next = at
    for (let digit = digitOf(octets[next]!); digit >= 0 && next - at < maxSizeDigits; digit = digitOf(octets[next]!)) {
      size = size * 16 + digit
      next++
    }
    if (size === 0 || octets[next] !== cr || octets[next + 1] !== lf) return at
    left = size
    state = 'data'
    return next + 2
  }

  /** Where the next one begins; -1 if its end has not come. */
  function readTrailer(octets: Buffer, at: number): number {
    const end = octets.indexOf(lf, at)
    const until = end < 0 ? octets.length : end
    if (held.length + until - at > maxLineLength) throw new MalformedAnswer('a line between chunks is too long')
    held += octets.toString('latin1', at, until)
    if (end < 0) return -1
    if (held.charCodeAt(held.length - 1) !== cr) throw new MalformedAnswer('a line between chunks ends without CR')
    const text = held.slice(0, -1)
    held = ''
    trailers += text.length
    if (text === '') state = 'done'
    else if (trailers > maxTrailersLength || !trailer.test(text))
      throw new MalformedAnswer('the trailers are malformed')
    return end + 1
  }

  return {
    read(octets, deliver) {
      let at = 0
      // The body is moved together at the begin of the octets.
      let bytes = 0
      while (at >= 0 && at < octets.length && state !== 'done') {
        if (state === 'data') {
          const end = Math.min(octets.length, at + left)
          left -= end - at
          if (bytes === at) bytes = at = end
          else if (end - at < smallBytes) while (at < end) octets[bytes++] = octets[at++]!
          else {
            octets.copyWithin(bytes, at, end)
            bytes += end - at
            at = end
          }
          if (left === 0) state = 'break'
          if (left === 0 && octets[at] === cr && octets[at + 1] === lf) {
            at += 2
            beginSize()
            at = readShortSize(octets, at)
          }
        } else if (state === 'break' || state === 'break feed') {
          if (octets[at++] !== (state === 'break' ? cr : lf))
            throw new MalformedAnswer('a chunk is longer than its size')
          if (state === 'break') state = 'break feed'
          else beginSize()
        } else if (state === 'trailers') at = readTrailer(octets, at)
        else readSize(octets[at++]!)
      }
      if (bytes > 0) deliver(bytes === octets.length ? octets : octets.subarray(0, bytes))
      return state === 'done' ? at : -1
    },
  }
}
