// Packs records into as few messages as possible, and creates answers without records.

import { extendedErrors, headerOctets, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import type { Query } from '../../../dns/packet/query.ts'
import { skipName } from '../../../dns/packet/wire-names.ts'
import type { OwnedSet } from '../zones/lookup.ts'
import { bareAnswer, type Encoder, type Options, type Template, withError } from './encode.ts'

/** The range of compression pointers. A message is encoded without a pause, so a larger one would delay queries. */
export const messageOctets = 16_384
const minRecordOctets = 12
const tcBit = 0x02

export function optionsOf(query: Query): Options | null {
  return query.edns ? { nsid: null, cookie: null, udpSize: 1232 } : null
}

/** The maximum length of an answer over UDP, including the signature. */
export function udpLimit(query: Query): number {
  return query.edns ? Math.min(1232, Math.max(512, query.udpSize)) : 512
}

/** The minimum size of these records, as if their names were compressed to nothing. */
export function minOctets(sets: readonly OwnedSet[]): number {
  let octets = 0
  for (const { set } of sets) {
    for (const { head, tail } of set.rdatas) octets += minRecordOctets + head.length + tail.length
  }
  return octets
}

/** How many sets and records were encoded, and the message with them. */
export type EncodedSome = { template: Template; sets: number; records: number }

/** Encodes as many of these sets, one record each, as fit into a message. `finishAnswer` completes it for each request. */
export function encodeSome(encoder: Encoder, origin: string, answer: OwnedSet[]): EncodedSome {
  const question = Buffer.from(`${origin}\0\0\0\0`, 'latin1')
  const found = { rcode: rcodes.NOERROR, authoritative: true, answer, authority: [], additional: [] }
  const encoded = encoder.encode(
    question,
    origin,
    { ...found, cacheable: false, wildcard: false, general: false, proofs: null, awaits: null },
    messageOctets,
  )
  // Not from the pool, so that its memory can be freed at once.
  const octets = Buffer.allocUnsafeSlow(encoded.end - encoded.start)
  encoded.octets.copy(octets, 0, encoded.start, encoded.end)
  octets[2] = octets[2]! & ~tcBit
  const records = octets.readUInt16BE(6)
  const template = { octets, start: 0, end: octets.length, below: null }
  // A record that is too large for a message is skipped, so that the rest of the zone is transferred.
  return { template, sets: Math.min(answer.length, Math.max(1, records)), records }
}

/** Also for NOTIFY, whose question the nameserver doesn't decode. */
export function refusal(message: Buffer, query: Query, rcode: number, truncated = false): Buffer {
  let { questionEnd } = query
  if (questionEnd === 0 && message.readUInt16BE(4) === 1) {
    const nameEnd = skipName(message, headerOctets)
    // A compression pointer in the first name is invalid and isn't echoed.
    if (nameEnd > 0 && nameEnd + 4 <= message.length && !hasPointer(message, nameEnd)) questionEnd = nameEnd + 4
  }
  const known = { ...query, questionEnd }
  const options = optionsOf(query)
  const explained =
    rcode === rcodes.REFUSED ? withError(known, options, extendedErrors.prohibited, udpLimit(query)) : options
  return bareAnswer(message, known, { rcode, truncated }, explained)
}

function hasPointer(message: Buffer, nameEnd: number): boolean {
  return message[nameEnd - 1] !== 0 || (nameEnd - 2 >= headerOctets && message[nameEnd - 2]! >= 0xc0)
}

/** The serial that an IXFR starts from, in the SOA of the authority section; null if there is none. */
export function knownSerial(message: Buffer, query: Query): number | null {
  if (message.readUInt16BE(8) !== 1) return null
  const fixed = skipName(message, query.questionEnd)
  if (fixed < 0 || fixed + 10 > message.length || message.readUInt16BE(fixed) !== typeNumbers.SOA) return null
  const end = fixed + 10 + message.readUInt16BE(fixed + 8)
  const mname = skipName(message, fixed + 10)
  const rname = mname < 0 ? -1 : skipName(message, mname)
  return rname < 0 || rname + 20 !== end || end > message.length ? null : message.readUInt32BE(rname)
}
