// Encodes questions and decodes answers for a DNS client. Every octet of an answer is untrusted.
import { classIn, flags, headerOctets, maxLabelOctets, maxNameOctets } from './numbers.ts'
import { skipName } from './wire-names.ts'

export type QuestionOptions = { id: number; type: number; recursive: boolean }

/** A query for records of a name; undefined if the text isn't a name. */
export function encodeQuestion(name: string, { id, type, recursive }: QuestionOptions): Buffer | undefined {
  const labels = name === '' ? [] : name.split('.').map((label) => Buffer.from(label, 'latin1'))
  if (labels.some(({ length }) => length < 1 || length > maxLabelOctets)) return undefined
  const owner = labels.flatMap((label) => [Buffer.of(label.length), label])
  const question = Buffer.concat([...owner, Buffer.of(0, type >> 8, type & 0xff, 0, classIn)])
  if (question.length - 4 > maxNameOctets) return undefined
  return encodeQuery(question, id, recursive)
}

/** A query with this question: name, type and class in wire format. */
export function encodeQuery(question: Buffer, id: number, recursive: boolean): Buffer {
  const packet = Buffer.alloc(headerOctets + question.length)
  packet.writeUInt16BE(id, 0)
  packet.writeUInt16BE(recursive ? flags.recursionDesired : 0, 2)
  packet.writeUInt16BE(1, 4)
  question.copy(packet, headerOctets)
  return packet
}

export const flagsOf = (packet: Buffer) => packet.readUInt16BE(2)
export const rcodeOf = (packet: Buffer) => flagsOf(packet) & flags.rcode
export const isTruncated = (packet: Buffer) => (flagsOf(packet) & flags.truncated) !== 0

/** Whether a packet has a question: some servers omit it when they refuse. */
export const hasQuestion = (packet: Buffer) => packet.readUInt16BE(4) !== 0

/** Only ASCII letters: Unicode lower case would make different names equal. */
const folded = (octets: Buffer) => octets.toString('latin1').replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Whether a packet answers this query. Its letters may have a different case. */
export function isAnswerTo(packet: Buffer, query: Buffer): boolean {
  if (packet.length < headerOctets || packet.readUInt16BE(0) !== query.readUInt16BE(0)) return false
  if ((flagsOf(packet) & (flags.response | flags.opcode)) !== flags.response) return false
  if (!hasQuestion(packet)) return rcodeOf(packet) !== 0
  // A signature may follow the question of a query.
  const end = skipName(query, headerOctets) + 4
  if (packet.readUInt16BE(4) !== 1 || packet.length < end) return false
  return folded(packet.subarray(headerOctets, end)) === folded(query.subarray(headerOctets, end))
}

export type WireRecord = { start: number; type: number; class: number; dataStart: number; end: number }

/** The record at `start`; undefined if it is truncated or malformed. */
export function readRecord(packet: Buffer, start: number): WireRecord | undefined {
  const fixed = skipName(packet, start)
  if (fixed < 0 || fixed + 10 > packet.length) return undefined
  const end = fixed + 10 + packet.readUInt16BE(fixed + 8)
  if (end > packet.length) return undefined
  return {
    start,
    type: packet.readUInt16BE(fixed),
    class: packet.readUInt16BE(fixed + 2),
    dataStart: fixed + 10,
    end,
  }
}

/** DNS over TCP: two octets with the length before each packet. */
export function frame(packet: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(2 + packet.length)
  framed.writeUInt16BE(packet.length)
  packet.copy(framed, 2)
  return framed
}

/** The first packet, if it is complete. */
export function unframe(received: Buffer): Buffer | undefined {
  if (received.length < 2) return undefined
  const end = 2 + received.readUInt16BE()
  return received.length < end ? undefined : received.subarray(2, end)
}
