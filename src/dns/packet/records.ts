// Reads the records of a message from elsewhere, of any type. Every octet is untrusted.
import { readRecord, type WireRecord } from './message.ts'
import { type NameCache, readName } from './wire-names.ts'

/** The name is lower case without a trailing dot. Names in the rdata are lower case too, and uncompressed. */
export type DecodedRecord = { name: string; type: number; class: number; ttl: number; rdata: Buffer }

// The offset of the name in the rdata of types that may compress it (RFC 3597, section 4).
const nameOffsets = new Map([
  [2, 0],
  [5, 0],
  [12, 0],
  [15, 2],
  [33, 6],
  [39, 0],
])

function rdataOf(message: Buffer, { type, dataStart: start, end }: WireRecord, known: NameCache): Buffer {
  const offset = nameOffsets.get(type)
  if (offset === undefined || end - start <= offset) return Buffer.from(message.subarray(start, end))
  return Buffer.concat([
    message.subarray(start, start + offset),
    Buffer.from(readName(message, start + offset, known).wire, 'latin1'),
  ])
}

/** Reads the next `count` records. Throws a RangeError if they are malformed. */
export function readRecords(message: Buffer, start: number, count: number): { records: DecodedRecord[]; end: number } {
  const records: DecodedRecord[] = []
  const known: NameCache = new Map()
  let at = start
  for (let left = count; left > 0; left--) {
    const record = readRecord(message, at)
    if (!record) throw new RangeError('a record is cut off')
    records.push({
      name: readName(message, record.start, known).name,
      type: record.type,
      class: record.class,
      ttl: message.readUInt32BE(record.dataStart - 6),
      rdata: rdataOf(message, record, known),
    })
    at = record.end
  }
  return { records, end: at }
}
