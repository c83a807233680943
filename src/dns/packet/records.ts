// Reads the records of a message from elsewhere, whatever their types. Every octet is untrusted.
import { readRecord } from './message.ts'
import { highestLabelOctets, highestNameOctets } from './numbers.ts'
import { readName } from './wire-names.ts'

/** The name is in lower case without the last dot; names in the rdata have no pointers any more. */
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

/** The octets of a name with its pointers followed; each leads further back than the last, so that there are no loops. */
function wholeName(message: Buffer, start: number): Buffer {
  const parts: Buffer[] = []
  let size = 1
  for (let at = start, lowest = start; ; ) {
    const length = message.readUInt8(at)
    if (length >= 0xc0) {
      at = message.readUInt16BE(at) & 0x3fff
      if (at >= lowest) throw new RangeError('a pointer leads forwards')
      lowest = at
      continue
    }
    if (length > highestLabelOctets) throw new RangeError('not a label')
    if (length === 0) return Buffer.concat([...parts, Buffer.of(0)])
    size += 1 + length
    if (size > highestNameOctets || at + 1 + length > message.length) throw new RangeError('a name is too long')
    parts.push(message.subarray(at, at + 1 + length))
    at += 1 + length
  }
}

function rdataOf(message: Buffer, type: number, start: number, end: number): Buffer {
  const offset = nameOffsets.get(type)
  if (offset === undefined || end - start <= offset) return Buffer.from(message.subarray(start, end))
  return Buffer.concat([message.subarray(start, start + offset), wholeName(message, start + offset)])
}

/** The next `count` records, and where they end. Throws a RangeError if they are broken. */
export function readRecords(message: Buffer, start: number, count: number): { records: WholeRecord[]; end: number } {
  const records: WholeRecord[] = []
  let at = start
  for (let left = count; left > 0; left--) {
    const record = readRecord(message, at)
    if (!record) throw new RangeError('a record is cut off')
    const { type, class: classOf, dataStart, end } = record
    records.push({
      name: readName(message, record.start).name,
      type,
      class: classOf,
      ttl: message.readUInt32BE(dataStart - 6),
      rdata: rdataOf(message, type, dataStart, end),
    })
    at = end
  }
  return { records, end: at }
}
