// Encodes DNS answers: sections with compressed names, truncated at whole RRsets if they do not fit.

import { headerOctets, typeNumbers } from '../../dns/packet/numbers.ts'
import type { Query } from '../../dns/packet/query.ts'
import type { Found, OwnedSet } from './lookup.ts'

/** A message without id and RD, with the question in lower case. */
export type Template = { octets: Buffer; start: number; end: number }

export type Encoder = {
  /** Valid until the next call. `limit` is for the whole message; TC is set if anything is left out. */
  encode(question: Buffer, name: string, found: Found, limit: number): Template & { truncated: boolean }
}

const highestMessage = 65_535
// A record is written before its size is checked; none is longer than this.
const slack = 8192
const pointer = 0xc000
const highestPointer = 0x3fff
const aaBit = 0x04
const tcBit = 0x02

/** Each encoder has its own scratch buffer, so that threads share nothing. */
export function createEncoder(): Encoder {
  const scratch = Buffer.alloc(highestMessage + slack)
  const offsets = new Map<string, number>()
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
        writeU16(pointer | earlier)
        return
      }
      if (at <= highestPointer) offsets.set(suffix, at)
      for (const end = start + 1 + length; start < end; start++) scratch[at++] = name.charCodeAt(start)
    }
    scratch[at++] = 0
  }

  /** False if the set does not fit; then nothing of it is written. */
  function writeSet({ owner, set }: OwnedSet, limit: number): boolean {
    const before = at
    for (const { head, names, tail } of set.rdatas) {
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
        at = before
        return false
      }
    }
    return true
  }

  return {
    encode(question, name, found, limit) {
      offsets.clear()
      scratch.fill(0, 0, headerOctets)
      at = headerOctets
      // Resolvers that compare case (0x20) find the question's own spelling behind every pointer.
      for (let start = 0; name.charCodeAt(start) !== 0; start += 1 + name.charCodeAt(start)) {
        offsets.set(start === 0 ? name : name.slice(start), headerOctets + start)
      }
      at += question.copy(scratch, at)
      const highest = Math.min(limit, highestMessage)
      let truncated = false
      scratch[5] = 1
      for (const [index, section] of [found.answer, found.authority, found.additional].entries()) {
        let count = 0
        for (const owned of section) {
          if (truncated) break
          // Omitted glue sets TC as well: without it the referral may be useless (RFC 9471).
          if (writeSet(owned, highest)) count += owned.set.rdatas.length
          else truncated = true
        }
        scratch.writeUInt16BE(count, 6 + index * 2)
      }
      scratch[2] = (found.authoritative ? aaBit : 0) | (truncated ? tcBit : 0)
      scratch[3] = found.rcode & 0x0f
      return { octets: scratch, start: 0, end: at, truncated }
    },
  }
}

/** What an OPT record of ours can hold; `cookie` is client and server cookie together. */
export type Options = { nsid: Buffer | null; cookie: Buffer | null; udpSize: number }

export function optOctets({ nsid, cookie }: Options): number {
  return 11 + (nsid ? 4 + nsid.length : 0) + (cookie ? 4 + cookie.length : 0)
}

/** Writes the record after the message, which ends at `start`. */
function writeOpt(
  answer: Buffer,
  start: number,
  extended: { rcode: number; dnssecOk: boolean },
  options: Options,
): void {
  const { nsid, cookie, udpSize } = options
  answer[start] = 0
  answer.writeUInt16BE(typeNumbers.OPT, start + 1)
  answer.writeUInt16BE(udpSize, start + 3)
  answer[start + 5] = extended.rcode >> 4
  answer[start + 6] = 0
  // DO is copied (RFC 3225), although nothing here is signed.
  answer[start + 7] = extended.dnssecOk ? 0x80 : 0
  answer[start + 8] = 0
  answer.writeUInt16BE(optOctets(options) - 11, start + 9)
  let at = start + 11
  for (const [code, data] of [
    [3, nsid],
    [10, cookie],
  ] as const) {
    if (!data) continue
    answer.writeUInt16BE(code, at)
    answer.writeUInt16BE(data.length, at + 2)
    at += 4 + data.copy(answer, at + 4)
  }
}

/** Completes a template to the answer to a packet: its id, its RD, its spelling of the name, and its OPT. */
export function finishAnswer(template: Template, message: Buffer, query: Query, options: Options | null): Buffer {
  const length = template.end - template.start
  const answer = Buffer.allocUnsafe(length + (options ? optOctets(options) : 0))
  template.octets.copy(answer, 0, template.start, template.end)
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
  // Extended codes need an OPT record; without one, only the low bits are sent, which suffice for our codes.
  if (options) {
    writeOpt(answer, length, { rcode, dnssecOk: query.dnssecOk }, options)
    answer[11] = 1
  }
  return answer
}
