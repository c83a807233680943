// Parses DNS answers for verification: records of eight types, from untrusted bytes.

import { ipv4Text, ipv6Text } from '../../dns/addresses.ts'
import { dnskeyTextOfRdata, dsTextOfRdata } from '../../dns/dnssec/ds-texts.ts'
import {
  encodeQuestion,
  flagsOf,
  hasQuestion,
  isAnswerTo,
  readRecord,
  type WireRecord,
} from '../../dns/packet/message.ts'
import { classIn, flags, typeNumbers } from '../../dns/packet/numbers.ts'
import { type NameCache, printable, readName } from '../../dns/packet/wire-names.ts'

const types = ['A', 'NS', 'CNAME', 'SOA', 'TXT', 'AAAA', 'DS', 'DNSKEY'] as const
export type Type = (typeof types)[number]

/** `data` is a name, an address or a text, depending on the type; empty for an SOA. Only a DS has a `ttl`. */
export type Rr = { name: string; type: Type; data: string; ttl?: number }

export type Answer = {
  code: number
  /** The AA flag: the answer is not from a cache. */
  authoritative: boolean
  truncated: boolean
  answer: Rr[]
  authority: Rr[]
}

const typeNames = new Map<number, Type>(types.map((type) => [typeNumbers[type], type]))

export function encodeQuery(id: number, name: string, type: Type, recursive: boolean): Buffer | undefined {
  return encodeQuestion(name, { id, type: typeNumbers[type], recursive })
}

function readTexts(data: Buffer): string {
  const texts: Buffer[] = []
  for (let at = 0; at < data.length; at += 1 + data[at]!) {
    if (at + 1 + data[at]! > data.length) throw new RangeError('a text is cut off')
    texts.push(data.subarray(at + 1, at + 1 + data[at]!))
  }
  return printable(Buffer.concat(texts), '\\')
}

function readData(message: Buffer, type: Type, { dataStart, end }: WireRecord, known: NameCache): string {
  const data = message.subarray(dataStart, end)
  if (type === 'NS' || type === 'CNAME') return readName(message, dataStart, known).name
  if (type === 'TXT') return readTexts(data)
  if (type === 'SOA') return ''
  if (type === 'DS') return dsTextOfRdata(data)
  if (type === 'DNSKEY') return dnskeyTextOfRdata(data)
  if (data.length !== (type === 'A' ? 4 : 16)) throw new RangeError('not an address')
  return type === 'A' ? ipv4Text(data) : ipv6Text(data)
}

/** Returns the records; null if the message doesn't answer this query. Throws a RangeError if it is malformed. */
export function decodeAnswer(message: Buffer, query: Buffer): Answer | null {
  if (!isAnswerTo(message, query)) return null
  const bits = flagsOf(message)
  const read = {
    code: bits & flags.rcode,
    authoritative: (bits & flags.authoritative) !== 0,
    truncated: (bits & flags.truncated) !== 0,
  }
  // A truncated answer is queried again over TCP.
  if (read.truncated || !hasQuestion(message)) return { ...read, answer: [], authority: [] }
  const known: NameCache = new Map()
  let at = query.length
  const section = (count: number): Rr[] => {
    const found: Rr[] = []
    for (let left = count; left > 0; left--) {
      const record = readRecord(message, at)
      if (!record) throw new RangeError('a record is cut off')
      const type = typeNames.get(record.type)
      if (type && record.class === classIn) {
        const { name } = readName(message, record.start, known)
        const data = readData(message, type, record, known)
        // The TTL precedes the two-byte length of the data.
        found.push({ name, type, data, ...(type === 'DS' && { ttl: message.readUInt32BE(record.dataStart - 6) }) })
      }
      at = record.end
    }
    return found
  }
  return { ...read, answer: section(message.readUInt16BE(6)), authority: section(message.readUInt16BE(8)) }
}
