// Filters a sandbox's DNS messages: which questions are forwarded, and which addresses are removed from answers.
import { ipv4Text } from '../../dns/addresses.ts'
import { encodeQuestion, hasQuestion, rcodeOf, readRecord, type WireRecord } from '../../dns/packet/message.ts'
import { classIn, flags, headerOctets, rcodes, typeNumbers } from '../../dns/packet/numbers.ts'
import { decodeQuery, emptyQuery } from '../../dns/packet/query.ts'

const typeA6 = 38
const typeTkey = 249
/** Sandboxes only have IPv4, and SVCB and HTTPS contain address hints. */
const withoutAnswer: ReadonlySet<number> = new Set([typeNumbers.AAAA, typeA6, typeNumbers.SVCB, typeNumbers.HTTPS])

export type Question = {
  id: number
  recursionDesired: boolean
  type: number
  /** The raw name, type and class. */
  bytes: Buffer
}

/** Returns a question to forward, or our own answer; undefined to ignore the packet. */
export function readQuestion(packet: Buffer): Question | { answer: Buffer } | undefined {
  const query = emptyQuery()
  if (!decodeQuery(packet, query)) return undefined
  const { id, recursionDesired, type } = query
  const bytes = query.rcode === rcodes.NOERROR ? packet.subarray(headerOctets, query.questionEnd) : Buffer.alloc(0)
  const question = { id, recursionDesired, type, bytes }
  if (query.rcode !== rcodes.NOERROR) return { answer: reply(question, query.rcode & flags.rcode) }
  // Types from TKEY on include transfers and ANY: large, and not needed here.
  const meta = type === typeNumbers.OPT || type === 0 || (type >= typeTkey && type <= typeNumbers.ANY)
  if (query.class !== classIn || meta) return { answer: reply(question, rcodes.REFUSED) }
  if (withoutAnswer.has(type)) return { answer: reply(question, rcodes.NOERROR) }
  return question
}

/** An answer with no records. */
export function reply({ id, recursionDesired, bytes }: Question, rcode: number): Buffer {
  const packet = Buffer.alloc(headerOctets + bytes.length)
  packet.writeUInt16BE(id, 0)
  const desired = recursionDesired ? flags.recursionDesired : 0
  packet.writeUInt16BE(flags.response | flags.recursionAvailable | desired | rcode, 2)
  packet.writeUInt16BE(bytes.length > 0 ? 1 : 0, 4)
  bytes.copy(packet, headerOctets)
  return packet
}

/** A question for the addresses of a name; undefined if the name is invalid. */
export function addressQuestion(name: string): Question | undefined {
  const type = typeNumbers.A
  const packet = name === '' ? undefined : encodeQuestion(name, { id: 0, type, recursive: true })
  return packet && { id: 0, recursionDesired: true, type, bytes: packet.subarray(headerOctets) }
}

/**
 * Filters the upstream's answer. One forbidden address empties the whole answer: a mix of public and private addresses
 * targets clients that check one and connect to another. Additional records are removed unread, because a public name
 * may have an internal name server.
 */
export function screen(packet: Buffer, question: Question, crosses: (address: string) => boolean): Buffer {
  const rcode = rcodeOf(packet)
  if (!hasQuestion(packet)) return reply(question, rcode)
  const counted = packet.readUInt16BE(6) + packet.readUInt16BE(8)
  let offset = headerOctets + question.bytes.length
  for (let index = 0; index < counted; index++) {
    const record = readRecord(packet, offset)
    if (record === undefined || record.type === typeNumbers.OPT) return reply(question, rcodes.SERVFAIL)
    if (withoutAnswer.has(record.type)) return reply(question, rcodes.NOERROR)
    if (record.type === typeNumbers.A) {
      const address = addressOf(packet, record)
      if (address === undefined) return reply(question, rcodes.SERVFAIL)
      if (crosses(address)) return reply(question, rcodes.NOERROR)
    }
    offset = record.end
  }
  // The question keeps its length, so compression pointers stay valid.
  const answer = Buffer.concat([reply(question, rcode), packet.subarray(headerOctets + question.bytes.length, offset)])
  packet.copy(answer, 6, 6, 10)
  return answer
}

/** The addresses in a screened answer. */
export function addressesIn(packet: Buffer, question: Question): string[] {
  const found: string[] = []
  let offset = headerOctets + question.bytes.length
  for (let left = packet.readUInt16BE(6); left > 0; left--) {
    const record = readRecord(packet, offset)
    if (record === undefined) return found
    const address = record.type === typeNumbers.A ? addressOf(packet, record) : undefined
    if (address !== undefined) found.push(address)
    offset = record.end
  }
  return found
}

function addressOf(packet: Buffer, { dataStart, end }: WireRecord): string | undefined {
  return end - dataStart === 4 ? ipv4Text(packet.subarray(dataStart, end)) : undefined
}
