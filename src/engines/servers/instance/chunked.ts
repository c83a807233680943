// Decodes the chunked transfer coding of a server's response (RFC 9112, 7.1). Drops extensions and trailers.
import { MalformedResponse } from './response-head.ts'

export type ChunkedDecoder = {
  /**
   * Calls `deliver` at most once, with the part of the body in `octets`, which it overwrites. The part is valid as long
   * as `octets` is. Returns the position after the last chunk, or -1 if that has not arrived yet.
   */
  read(octets: Buffer, deliver: (part: Buffer) => void): number
}

const [tab, lf, cr, space, semicolon] = [9, 10, 13, 32, 59]
const maxSizeDigits = 13
// Limits extensions, which make up the rest of a line.
const maxLineLength = 4096
const maxTrailersLength = 16 << 10
// Below this size, a loop is faster than a call.
const smallBytes = 32
const trailer = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/

type State = 'digits' | 'space' | 'extension' | 'line feed' | 'data' | 'break' | 'break feed' | 'trailers' | 'done'

/** The value of a hexadecimal digit; -1 if it is none. */
function digitOf(octet: number): number {
  if (octet >= 48 && octet <= 57) return octet - 48
  const letter = octet | 0x20
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

/** Works byte by byte: servers may send millions of one-byte chunks, and a string for each costs a hundred times more. */
export function createChunkedDecoder(): ChunkedDecoder {
  let state: State = 'digits'
  let remaining = 0
  let digits = 0
  let lineBytes = 0
  let trailers = 0
  // A trailer line whose end has not arrived yet.
  let partialTrailer = ''

  function beginSize(): void {
    state = 'digits'
    remaining = digits = lineBytes = 0
  }

  /** Reads one byte of the line with a chunk's size. */
  function readSize(octet: number): void {
    if (++lineBytes > maxLineLength) throw new MalformedResponse('a line between chunks is too long')
    if (state === 'line feed') {
      if (octet !== lf) throw new MalformedResponse('a line between chunks ends without CR')
      state = remaining === 0 ? 'trailers' : 'data'
      return
    }
    if (state === 'digits') {
      const digit = digitOf(octet)
      if (digit >= 0) {
        if (++digits > maxSizeDigits) throw new MalformedResponse('a chunk has no size')
        remaining = remaining * 16 + digit
        return
      }
      if (digits === 0) throw new MalformedResponse('a chunk has no size')
    }
    if (octet === cr) state = 'line feed'
    else if (state === 'extension') {
      if (octet !== tab && (octet < space || octet === 0x7f)) throw new MalformedResponse('a chunk has no size')
    } else if (octet === semicolon) state = 'extension'
    else if (octet === tab || octet === space) state = 'space'
    else throw new MalformedResponse('a chunk has no size')
  }

  /** Reads a complete line with only a size and returns where the chunk starts; returns `at` for any other line. */
  function readShortSize(octets: Buffer, at: number): number {
    let size = 0
    let next = at
    for (let digit = digitOf(octets[next]!); digit >= 0 && next - at < maxSizeDigits; digit = digitOf(octets[next]!)) {
      size = size * 16 + digit
      next++
    }
    if (size === 0 || octets[next] !== cr || octets[next + 1] !== lf) return at
    remaining = size
    state = 'data'
    return next + 2
  }

  /** Returns where the next trailer starts; -1 if this one is incomplete. */
  function readTrailer(octets: Buffer, at: number): number {
    const end = octets.indexOf(lf, at)
    const until = end < 0 ? octets.length : end
    if (partialTrailer.length + until - at > maxLineLength)
      throw new MalformedResponse('a line between chunks is too long')
    partialTrailer += octets.toString('latin1', at, until)
    if (end < 0) return -1
    if (partialTrailer.charCodeAt(partialTrailer.length - 1) !== cr)
      throw new MalformedResponse('a line between chunks ends without CR')
    const text = partialTrailer.slice(0, -1)
    partialTrailer = ''
    trailers += text.length
    if (text === '') state = 'done'
    else if (trailers > maxTrailersLength || !trailer.test(text))
      throw new MalformedResponse('the trailers are malformed')
    return end + 1
  }

  return {
    read(octets, deliver) {
      let at = 0
      // The chunks are moved together at the start of `octets`.
      let bytes = 0
      while (at >= 0 && at < octets.length && state !== 'done') {
        if (state === 'data') {
          const end = Math.min(octets.length, at + remaining)
          remaining -= end - at
          if (bytes === at) bytes = at = end
          else if (end - at < smallBytes) while (at < end) octets[bytes++] = octets[at++]!
          else {
            octets.copyWithin(bytes, at, end)
            bytes += end - at
            at = end
          }
          if (remaining === 0) state = 'break'
          if (remaining === 0 && octets[at] === cr && octets[at + 1] === lf) {
            at += 2
            beginSize()
            at = readShortSize(octets, at)
          }
        } else if (state === 'break' || state === 'break feed') {
          if (octets[at++] !== (state === 'break' ? cr : lf))
            throw new MalformedResponse('a chunk is longer than its size')
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
