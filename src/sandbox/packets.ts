// Reads DNS packets of either side as hostile input, and cuts from answers what a sandbox must not learn.
import { Buffer } from 'node:buffer'

const HEADER = 12
const MAX_NAME = 255
const IN = 1
const TYPE = { A: 1, A6: 38, AAAA: 28, OPT: 41, SVCB: 64, HTTPS: 65, TKEY: 249 }
/** Sandboxes have IPv4 alone; SVCB and HTTPS carry hints of addresses. */
const WITHOUT_ANSWER = new Set([TYPE.AAAA, TYPE.A6, TYPE.SVCB, TYPE.HTTPS])
const FLAG = { response: 0x8000, opcode: 0x7800, truncated: 0x0200, recursionDesired: 0x0100, recursion: 0x0080 }

export const RCODE = { noError: 0, formatError: 1, serverFailure: 2, notImplemented: 4, refused: 5 }

export type Question = {
  id: number
  flags: number
  type: number
  /** Name, type and class as they were sent. */
  bytes: Buffer
}

/** A question to pass on, or the answer it gets from us; undefined for what deserves none. */
export function readQuestion(packet: Buffer): Question | { answer: Buffer } | undefined {
  if (packet.length < HEADER) return undefined
  const id = packet.readUInt16BE(0)
  const flags = packet.readUInt16BE(2)
  if (flags & FLAG.response) return undefined
  const empty = { id, flags, type: 0, bytes: Buffer.alloc(0) }
  if (flags & FLAG.opcode) return { answer: reply(empty, RCODE.notImplemented) }
  const end = packet.readUInt16BE(4) === 1 ? endOfQuestion(packet) : undefined
  if (end === undefined) return { answer: reply(empty, RCODE.formatError) }
  const type = packet.readUInt16BE(end - 4)
  const question = { id, flags, type, bytes: packet.subarray(HEADER, end) }
  // Above TKEY are transfers and ANY: large, and good for nothing here.
  const meta = type === TYPE.OPT || type === 0 || (type >= TYPE.TKEY && type <= 255)
  if (packet.readUInt16BE(end - 2) !== IN || meta) return { answer: reply(question, RCODE.refused) }
  if (WITHOUT_ANSWER.has(type)) return { answer: reply(question, RCODE.noError) }
  return question
}

/** No compression: there is nothing before it to point to. */
function endOfQuestion(packet: Buffer): number | undefined {
  let offset = HEADER
  for (;;) {
    const length = packet[offset]
    if (length === undefined || length > 63) return undefined
    offset += 1 + length
    if (offset - HEADER > MAX_NAME) return undefined
    if (length === 0) return offset + 4 <= packet.length ? offset + 4 : undefined
  }
}

/** An answer without records. */
export function reply({ id, flags, bytes }: Question, rcode: number): Buffer {
  const packet = Buffer.alloc(HEADER + bytes.length)
  packet.writeUInt16BE(id, 0)
  packet.writeUInt16BE(FLAG.response | (flags & FLAG.recursionDesired) | FLAG.recursion | rcode, 2)
  packet.writeUInt16BE(bytes.length > 0 ? 1 : 0, 4)
  bytes.copy(packet, HEADER)
  return packet
}

/** The same question under another id, without what else the client sent: its options are not for our upstream. */
export function ask({ bytes }: Question, id: number): Buffer {
  const packet = Buffer.alloc(HEADER + bytes.length)
  packet.writeUInt16BE(id, 0)
  packet.writeUInt16BE(FLAG.recursionDesired, 2)
  packet.writeUInt16BE(1, 4)
  bytes.copy(packet, HEADER)
  return packet
}

/** A question for the addresses of a name, or undefined when it is no name. */
export function addressQuestion(name: string): Question | undefined {
  const labels = name.split('.').map((label) => Buffer.from(label, 'latin1'))
  if (labels.some(({ length }) => length < 1 || length > 63)) return undefined
  const parts = labels.flatMap((label) => [Buffer.from([label.length]), label])
  const bytes = Buffer.concat([...parts, Buffer.from([0, 0, TYPE.A, 0, IN])])
  return bytes.length - 4 > MAX_NAME ? undefined : { id: 0, flags: 0, type: TYPE.A, bytes }
}

/** Whether this answers the question that was sent under the id; letters may have changed their case. */
export function isAnswerTo(packet: Buffer, { bytes }: Question, id: number): boolean {
  if (packet.length < HEADER + bytes.length || packet.readUInt16BE(0) !== id) return false
  const flags = packet.readUInt16BE(2)
  if (!(flags & FLAG.response) || flags & FLAG.opcode || packet.readUInt16BE(4) !== 1) return false
  const echoed = packet.subarray(HEADER, HEADER + bytes.length)
  return lowerCase(echoed) === lowerCase(bytes)
}

/** Only letters: a locale's lower case would make different names equal. */
const lowerCase = (bytes: Buffer) => bytes.toString('latin1').replace(/[A-Z]/g, (letter) => letter.toLowerCase())

export const isTruncated = (packet: Buffer) => (packet.readUInt16BE(2) & FLAG.truncated) !== 0
export const rcodeOf = (packet: Buffer) => packet[3]! & 15

/**
 * The upstream's answer as the client may have it. One address that must not be known empties all of it: whoever mixes
 * public and private addresses wants a client that checks the one and connects to the other. Additional records are
 * cut unread, for a public name may well have a server within the company.
 */
export function screen(packet: Buffer, question: Question, crosses: (address: string) => boolean): Buffer {
  const rcode = rcodeOf(packet)
  const counted = packet.readUInt16BE(6) + packet.readUInt16BE(8)
  let offset = HEADER + question.bytes.length
  for (let index = 0; index < counted; index++) {
    const record = readRecord(packet, offset)
    if (record === undefined || record.type === TYPE.OPT) return reply(question, RCODE.serverFailure)
    if (WITHOUT_ANSWER.has(record.type)) return reply(question, RCODE.noError)
    if (record.type === TYPE.A) {
      if (record.data.length !== 4) return reply(question, RCODE.serverFailure)
      if (crosses(record.data.join('.'))) return reply(question, RCODE.noError)
    }
    offset = record.end
  }
  // The question has kept its length, so the pointers of compressed names still point at the same names.
  const answer = Buffer.concat([reply(question, rcode), packet.subarray(HEADER + question.bytes.length, offset)])
  packet.copy(answer, 6, 6, 10)
  return answer
}

/** The addresses in an answer that was screened. */
export function addressesIn(packet: Buffer, question: Question): string[] {
  const found: string[] = []
  let offset = HEADER + question.bytes.length
  for (let left = packet.readUInt16BE(6); left > 0; left--) {
    const record = readRecord(packet, offset)
    if (record === undefined) return found
    if (record.type === TYPE.A) found.push(record.data.join('.'))
    offset = record.end
  }
  return found
}

function readRecord(packet: Buffer, offset: number): { type: number; data: Buffer; end: number } | undefined {
  const fixed = endOfName(packet, offset)
  if (fixed === undefined || fixed + 10 > packet.length) return undefined
  const end = fixed + 10 + packet.readUInt16BE(fixed + 8)
  if (end > packet.length) return undefined
  return { type: packet.readUInt16BE(fixed), data: packet.subarray(fixed + 10, end), end }
}

/** Pointers are not followed, so no loop of them can hold us; one that does not point back is an error. */
function endOfName(packet: Buffer, start: number): number | undefined {
  for (let offset = start; offset - start <= MAX_NAME; ) {
    const length = packet[offset]
    if (length === undefined) return undefined
    if (length === 0) return offset + 1
    if (length >= 0xc0) {
      if (offset + 2 > packet.length || (packet.readUInt16BE(offset) & 0x3fff) >= start) return undefined
      return offset + 2
    }
    if (length > 63) return undefined
    offset += 1 + length
  }
  return undefined
}
