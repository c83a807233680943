// Reads the records of a message from elsewhere, whatever their types. Every octet is untrusted.
import { readRecord, type WireRecord } from './message.ts'
import { type KnownEnds, readName } from './wire-names.ts'

/** The name is in lower case without the last dot; names in the rdata are too, and have no pointers any more. */
export type WholeRecord = { name: string; type: number; class: number; ttl: number; rdata: Buffer }

// Where the name stands in the rdata of those types that may have it compressed (RFC 3597, section 4).
const nameOffsets = new Map([
  [2, 0],
  [5, 0],
  [12, 0],
  [15, 2],
  [33, 6],
  [39, 0],
])

function rdataOf(message: Buffer, { type, dataStart: start, end }: WireRecord, known: KnownEnds): Buffer {
  const offset = nameOffsets.get(type)
  if (offset === undefined || end - start <= offset) return Buffer.from(message.subarray(start, end))
  return Buffer.concat([
    message.subarray(start, start + offset),
    Buffer.from(readName(message, start + offset, known).wire, 'latin1'),
  ])
}

/** The next `count` records, and where they end. Throws a RangeError if they are broken. */
export function readRecords(message: Buffer, start: number, count: number): { records: WholeRecord[]; end: number } {
  const records: WholeRecord[] = []
  const known: KnownEnds = new Map()
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
