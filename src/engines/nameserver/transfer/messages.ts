// Packs records into as few messages as possible, and makes answers without records.

import { headerOctets, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { nameInQuery, type Query } from '../../../dns/packet/query.ts'
import { skipName } from '../../../dns/packet/wire-names.ts'
import { bareAnswer, type Encoder, finishAnswer, type Options } from '../encode.ts'
import type { OwnedSet } from '../lookup.ts'

/** Compression pointers reach 16 KiB; larger messages compress less, but need fewer signatures. */
export const messageOctets = 32_768
// No record is shorter, which bounds how many records are considered for one message.
const lowestRecordOctets = 12
const tcBit = 0x02

export function optionsOf(query: Query): Options | null {
  return query.edns ? { nsid: null, cookie: null, udpSize: 1232 } : null
}

/** The highest length of an answer over UDP, including the signature. */
export function udpLimit(query: Query): number {
  return query.edns ? Math.min(1232, Math.max(512, query.udpSize)) : 512
}

/** Messages are made on demand, so that a slow secondary costs the memory of one. */
export function* packed(
  encoder: Encoder,
  { message, query }: { message: Buffer; query: Query },
  records: readonly OwnedSet[],
  limit = messageOctets,
): Generator<Buffer> {
  const name = nameInQuery(message, query)
  const question = message.subarray(headerOctets, query.questionEnd)
  for (let at = 0, first = true; at < records.length; ) {
    const answer = records.slice(at, at + Math.ceil(limit / lowestRecordOctets))
    const found = { rcode: rcodes.NOERROR, authoritative: true, answer, authority: [], additional: [] }
    const template = encoder.encode(
      question,
      name,
      { ...found, cacheable: false, wildcard: false, general: false, proofs: null, awaits: null },
      limit,
    )
    const count = template.octets.readUInt16BE(template.start + 6)
    // A record that is too large for a message is skipped; the rest of the zone is transferred.
    at += Math.max(1, count)
    if (count === 0) continue
    const made = finishAnswer(template, message, query, first ? optionsOf(query) : null)
    made[2] = made[2]! & ~tcBit
    first = false
    yield made
  }
}

/** Also for NOTIFY, whose question the nameserver does not read. */
export function refusal(message: Buffer, query: Query, rcode: number, truncated = false): Buffer {
  let { questionEnd } = query
  if (questionEnd === 0 && message.readUInt16BE(4) === 1) {
    const nameEnd = skipName(message, headerOctets)
    // A compression pointer in the first name is invalid and not echoed.
    if (nameEnd > 0 && nameEnd + 4 <= message.length && !hasPointer(message, nameEnd)) questionEnd = nameEnd + 4
  }
  return bareAnswer(message, { ...query, questionEnd }, { rcode, truncated }, optionsOf(query))
}

function hasPointer(message: Buffer, nameEnd: number): boolean {
  return message[nameEnd - 1] !== 0 || (nameEnd - 2 >= headerOctets && message[nameEnd - 2]! >= 0xc0)
}

/** The serial that IXFR starts from: in the SOA of the authority section; null if there is none. */
export function knownSerial(message: Buffer, query: Query): number | null {
  if (message.readUInt16BE(8) !== 1) return null
  const fixed = skipName(message, query.questionEnd)
  if (fixed < 0 || fixed + 10 > message.length || message.readUInt16BE(fixed) !== typeNumbers.SOA) return null
  const end = fixed + 10 + message.readUInt16BE(fixed + 8)
  const mname = skipName(message, fixed + 10)
  const rname = mname < 0 ? -1 : skipName(message, mname)
  return rname < 0 || rname + 20 !== end || end > message.length ? null : message.readUInt32BE(rname)
}
