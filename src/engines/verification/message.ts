// DNS messages as the verification needs them: a question out, the records of six types in. Every octet is hostile.
import { ipv4Text, ipv6Text } from '../../dns/addresses.ts'

export const types = { A: 1, NS: 2, CNAME: 5, SOA: 6, TXT: 16, AAAA: 28 } as const
export type Type = keyof typeof types

/** `data` is a name, an address or a text, whatever the type holds; of an SOA its owner is all that counts. */
export type Rr = { name: string; type: Type; data: string }

export type Answer = {
  code: number
  /** The server speaks for the zone, and not from a cache. */
  authoritative: boolean
  truncated: boolean
  answer: Rr[]
  authority: Rr[]
}

export const codes = { noError: 0, servFail: 2, noSuchName: 3, refused: 5 } as const

const headerOctets = 12
const highestNameOctets = 255
const classIn = 1
const typeNames = new Map(Object.entries(types).map(([name, number]) => [number as number, name as Type]))

export function encodeQuestion(id: number, name: string, type: Type, recursive: boolean): Buffer {
  const header = Buffer.alloc(headerOctets)
  header.writeUInt16BE(id, 0)
  header[2] = recursive ? 1 : 0
  header.writeUInt16BE(1, 4)
  const labels = name === '' ? [] : name.split('.').map((label) => Buffer.from(label, 'latin1'))
  const owner = labels.flatMap((label) => [Buffer.from([label.length]), label])
  return Buffer.concat([header, ...owner, Buffer.from([0, 0, types[type], 0, classIn])])
}

/** Octets as text that can be stored and shown: what does not print, or would end a label, is escaped as `\DDD`. */
function printable(octets: Buffer, special: string): string {
  let text = ''
  for (const octet of octets) {
    const character = String.fromCharCode(octet)
    const plain = octet >= 0x20 && octet < 0x7f && !special.includes(character)
    text += plain ? character : `\\${octet.toString().padStart(3, '0')}`
  }
  return text
}

/** Lower case, without the last dot; the root is the empty name. */
function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = []
  let size = 1
  let at = start
  let end = -1
  let runStart = start
  for (;;) {
    const length = message.readUInt8(at)
    if (length >= 0xc0) {
      const target = message.readUInt16BE(at) & 0x3fff
      // Every pointer leads further back than the last, so that no message can lead in a circle.
      if (target >= runStart) throw new RangeError('a pointer leads forwards')
      if (end < 0) end = at + 2
      at = runStart = target
      continue
    }
    if (length > 63) throw new RangeError('not a label')
    if (length === 0) break
    size += 1 + length
    if (size > highestNameOctets || at + 1 + length > message.length) throw new RangeError('a name is too long')
    labels.push(printable(message.subarray(at + 1, at + 1 + length), '. \\').toLowerCase())
    at += 1 + length
  }
  return { name: labels.join('.'), end: end < 0 ? at + 1 : end }
}

function readTexts(data: Buffer): string {
  const texts: Buffer[] = []
  for (let at = 0; at < data.length; at += 1 + data[at]!) {
    if (at + 1 + data[at]! > data.length) throw new RangeError('a text is cut off')
    texts.push(data.subarray(at + 1, at + 1 + data[at]!))
  }
  return printable(Buffer.concat(texts), '\\')
}

function readData(message: Buffer, type: Type, start: number, end: number): string {
  const data = message.subarray(start, end)
  if (type === 'NS' || type === 'CNAME') return readName(message, start).name
  if (type === 'TXT') return readTexts(data)
  if (type === 'SOA') return ''
  if (data.length !== (type === 'A' ? 4 : 16)) throw new RangeError('not an address')
  return type === 'A' ? ipv4Text(data) : ipv6Text(data)
}

/** The records of a message; null if it does not answer this query at all. Throws a RangeError if it is broken. */
export function decodeAnswer(message: Buffer, query: Buffer): Answer | null {
  if (message.length < headerOctets || message.readUInt16BE(0) !== query.readUInt16BE(0)) return null
  const flags = message.readUInt16BE(2)
  // An answer, to an ordinary query.
  if ((flags & 0xf800) !== 0x8000) return null
  const code = flags & 0x0f
  const asked = (buffer: Buffer) => buffer.toString('latin1', headerOctets, query.length).toLowerCase()
  const read = { code, authoritative: (flags & 0x0400) !== 0, truncated: (flags & 0x0200) !== 0 }
  // Some servers leave the question out when they refuse.
  if (message.readUInt16BE(4) === 0 && code !== codes.noError) return { ...read, answer: [], authority: [] }
  if (message.readUInt16BE(4) !== 1 || asked(message) !== asked(query)) return null
  let at = query.length
  const section = (count: number): Rr[] => {
    const found: Rr[] = []
    for (let left = count; left > 0; left--) {
      const { name, end } = readName(message, at)
      const type = typeNames.get(message.readUInt16BE(end))
      const isInternet = message.readUInt16BE(end + 2) === classIn
      const start = end + 10
      at = start + message.readUInt16BE(end + 8)
      if (at > message.length) throw new RangeError('a record is cut off')
      if (type && isInternet) found.push({ name, type, data: readData(message, type, start, at) })
    }
    return found
  }
  // What was cut off is asked for again over TCP.
  if (read.truncated) return { ...read, answer: [], authority: [] }
  return { ...read, answer: section(message.readUInt16BE(6)), authority: section(message.readUInt16BE(8)) }
}
