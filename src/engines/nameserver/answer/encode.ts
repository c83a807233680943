// Encodes DNS answers: sections with compressed names, truncated at whole RRsets if they don't fit.

import { extendedErrors, headerOctets, typeNumbers } from '../../../dns/packet/numbers.ts'
import type { Query } from '../../../dns/packet/query.ts'
import type { LookupResult, OwnedSet } from '../zones/lookup.ts'

/** A message without id and RD, with the question in lower case. */
export type Template = {
  octets: Buffer
  start: number
  end: number
  /** For an answer to every nonexistent name below another; null for an answer to one question. */
  below: Below | null
}

/** How to adapt the answer to a question with another name. Offsets count from `start`. */
export type Below = {
  questionEnd: number
  /** Offsets of compression pointers to anything but the question's name. */
  pointers: readonly number[]
  /** For a signed answer, the gap of the chain that the name is in; null if it doesn't matter. */
  gap: number | null
}

export type Encoder = {
  /** The result is valid until the next call. `limit` applies to the whole message; TC is set if anything is left out. */
  encode(question: Buffer, name: string, found: LookupResult, limit: number): Encoded
}

export type Encoded = Template & { truncated: boolean; pointers: readonly number[] }

const maxMessage = 65_535
const maxUdp = 4096
// A record is written before its size is checked, and none is longer than this.
const slack = 8192
const pointer = 0xc000
const maxPointer = 0x3fff
const aaBit = 0x04
const tcBit = 0x02

/** Each encoder has its own scratch buffer, so that threads share nothing. */
export function createEncoder(): Encoder {
  const scratch = Buffer.alloc(maxMessage + slack)
  const offsets = new Map<string, number>()
  let pointers: number[] = []
  let at = 0

  function writeU16(value: number): void {
    scratch[at++] = value >> 8
    scratch[at++] = value & 0xff
  }

  function writeName(name: string): void {
    for (let start = 0; ; ) {
      const length = name.charCodeAt(start)
      if (length === 0) break
      const suffix = start === 0 ? name : name.slice(start)
      const earlier = offsets.get(suffix)
      if (earlier !== undefined) {
        if (earlier !== headerOctets) pointers.push(at)
        writeU16(pointer | earlier)
        return
      }
      if (at <= maxPointer) offsets.set(suffix, at)
      for (const end = start + 1 + length; start < end; start++) scratch[at++] = name.charCodeAt(start)
    }
    scratch[at++] = 0
  }

  /** Returns how many records were written: none if not all fit, or with `parts` as many as fit. */
  function writeSet({ owner, set }: OwnedSet, limit: number, parts: boolean): number {
    const before = at
    for (const [index, { head, names, tail }] of set.rdatas.entries()) {
      const recordAt = at
      writeName(owner)
      writeU16(set.type)
      writeU16(1)
      writeU16(set.ttl >>> 16)
      writeU16(set.ttl & 0xffff)
      const lengthAt = at
      at += 2
      at += head.copy(scratch, at)
      for (const name of names) writeName(name)
      at += tail.copy(scratch, at)
      scratch.writeUInt16BE(at - lengthAt - 2, lengthAt)
      if (at > limit) {
        at = parts ? recordAt : before
        return parts ? index : 0
      }
    }
    return set.rdatas.length
  }

  return {
    encode(question, name, found, limit) {
      offsets.clear()
      pointers = []
      scratch.fill(0, 0, headerOctets)
      at = headerOctets
      // Every pointer leads to the question's own spelling, for resolvers that compare case (0x20).
      for (let start = 0; name.charCodeAt(start) !== 0; start += 1 + name.charCodeAt(start)) {
        offsets.set(start === 0 ? name : name.slice(start), headerOctets + start)
      }
      at += question.copy(scratch, at)
      const maxLength = Math.min(limit, maxMessage)
      // A client can't get a longer answer than the longest message, so it gets what fits.
      const parts = maxLength > maxUdp
      let truncated = false
      scratch[5] = 1
      for (const [index, section] of [found.answer, found.authority, found.additional].entries()) {
        let count = 0
        for (const owned of section) {
          if (truncated) break
          // Omitting glue sets TC as well, because the referral may be useless without it (RFC 9471).
          const written = writeSet(owned, maxLength, parts)
          count += written
          truncated = written < owned.set.rdatas.length
        }
        scratch.writeUInt16BE(count, 6 + index * 2)
      }
      scratch[2] = (found.authoritative ? aaBit : 0) | (truncated ? tcBit : 0)
      scratch[3] = found.rcode & 0x0f
      return { octets: scratch, start: 0, end: at, below: null, truncated, pointers }
    },
  }
}

/** The content of our OPT record. `cookie` is the client and server cookie together. */
export type Options = { nsid: Buffer | null; cookie: Buffer | null; extendedError?: Buffer; udpSize: number }

export function optOctets({ nsid, cookie, extendedError }: Options): number {
  return 11 + (nsid ? 4 + nsid.length : 0) + (cookie ? 4 + cookie.length : 0) + (extendedError ? 6 : 0)
}

// Without a text: the code is enough, and this adds only six octets to the answer to a forged query.
const errorData = new Map(
  Object.values(extendedErrors).map((code): [number, Buffer] => [code, Buffer.from([code >> 8, code & 0xff])]),
)

/** Adds why an answer is an error (RFC 8914), for clients that support it, unless the answer would become too long. */
export function withError(query: Query, options: Options | null, code: number, limit: number): Options | null {
  const extendedError = errorData.get(code)
  const explained = options && extendedError && { ...options, extendedError }
  return explained && Math.max(headerOctets, query.questionEnd) + optOctets(explained) <= limit ? explained : options
}

/** Writes the record after the message, which ends at `start`. */
function writeOpt(
  answer: Buffer,
  start: number,
  extended: { rcode: number; dnssecOk: boolean },
  options: Options,
): void {
  const { nsid, cookie, extendedError, udpSize } = options
  answer[start] = 0
  answer.writeUInt16BE(typeNumbers.OPT, start + 1)
  answer.writeUInt16BE(udpSize, start + 3)
  answer[start + 5] = extended.rcode >> 4
  answer[start + 6] = 0
  // DO is copied (RFC 3225), even if the answer has no signatures.
  answer[start + 7] = extended.dnssecOk ? 0x80 : 0
  answer[start + 8] = 0
  answer.writeUInt16BE(optOctets(options) - 11, start + 9)
  let at = start + 11
  for (const [code, data] of [
    [3, nsid],
    [10, cookie],
    [15, extendedError],
  ] as const) {
    if (!data) continue
    answer.writeUInt16BE(code, at)
    answer.writeUInt16BE(data.length, at + 2)
    at += 4 + data.copy(answer, at + 4)
  }
}

/** The length of the answer to a query, without its OPT record. */
export function answerOctets({ start, end, below }: Template, query: Query): number {
  return end - start + (below ? query.questionEnd - below.questionEnd : 0)
}

/** Turns a template into the answer to a packet: sets its id, RD, spelling of the name, and OPT record. */
export function finishAnswer(template: Template, message: Buffer, query: Query, options: Options | null): Buffer {
  const { octets, start, end, below } = template
  const length = answerOctets(template, query)
  const answer = Buffer.allocUnsafe(length + (options ? optOctets(options) : 0))
  if (below) {
    octets.copy(answer, 0, start, start + headerOctets)
    octets.copy(answer, query.questionEnd, start + below.questionEnd, end)
    const moved = query.questionEnd - below.questionEnd
    for (const pointer of below.pointers) {
      const target = ((octets[start + pointer]! << 8) | octets[start + pointer + 1]!) + moved
      answer[pointer + moved] = target >> 8
      answer[pointer + moved + 1] = target & 0xff
    }
  } else octets.copy(answer, 0, start, end)
  message.copy(answer, headerOctets, headerOctets, query.questionEnd)
  answer[0] = message[0]!
  answer[1] = message[1]!
  answer[2] = answer[2]! | 0x80 | (query.recursionDesired ? 1 : 0)
  if (options) {
    writeOpt(answer, length, { rcode: answer[3]! & 0x0f, dnssecOk: query.dnssecOk }, options)
    answer.writeUInt16BE(answer.readUInt16BE(10) + 1, 10)
  }
  return answer
}

/** An answer without records: for errors and rate-limited clients. */
export function bareAnswer(
  message: Buffer,
  query: Query,
  { rcode, truncated = false }: { rcode: number; truncated?: boolean },
  options: Options | null,
): Buffer {
  const length = Math.max(headerOctets, query.questionEnd)
  const answer = Buffer.alloc(length + (options ? optOctets(options) : 0))
  message.copy(answer, 0, 0, length)
  answer[2] = 0x80 | (query.opcode << 3) | (truncated ? tcBit : 0) | (query.recursionDesired ? 1 : 0)
  answer[3] = rcode & 0x0f
  answer.fill(0, 4, headerOctets)
  if (query.questionEnd > 0) answer[5] = 1
  // Extended codes need an OPT record. Without one, only the low bits are sent, which suffice for our codes.
  if (options) {
    writeOpt(answer, length, { rcode, dnssecOk: query.dnssecOk }, options)
    answer[11] = 1
  }
  return answer
}
