// Extracts rdata from a message and decompresses its names, because a pointer means nothing outside its message.
import { maxPointers } from '../../../dns/packet/numbers.ts'
import { skipName } from '../../../dns/packet/wire-names.ts'

/** Octets before the name, for the types whose names a sender may compress (RFC 3597, section 4). */
const octetsBefore: Readonly<Record<number, number>> = {
  // NS, CNAME, PTR, DNAME
  2: 0,
  5: 0,
  12: 0,
  39: 0,
  // MX, AFSDB, RT, KX
  15: 2,
  18: 2,
  21: 2,
  36: 2,
  // SRV
  33: 6,
}

/** The name at `start` without pointers; null if it can't be read, or doesn't end at `end`. */
function wholeName(message: Buffer, start: number, end: number): Buffer | null {
  if (skipName(message.subarray(0, end), start) !== end) return null
  const labels: Buffer[] = []
  let size = 1
  for (let at = start, limit = start, pointers = 0; ; ) {
    const length = message[at]
    if (length === undefined) return null
    if (length >= 0xc0) {
      if (at + 2 > message.length) return null
      at = message.readUInt16BE(at) & 0x3fff
      // Every pointer must point further back than the last, which rules out loops.
      if (at >= limit || ++pointers > maxPointers) return null
      limit = at
      continue
    }
    if (length > 63 || at + 1 + length > message.length) return null
    size += 1 + length
    if (size > 256) return null
    labels.push(message.subarray(at, at + 1 + length))
    if (length === 0) return Buffer.concat(labels)
    at += 1 + length
  }
}

/** Null if a name in it can't be read. */
export function expandedRdata(
  message: Buffer,
  type: number,
  { start, end }: { start: number; end: number },
): Buffer | null {
  const before = octetsBefore[type]
  if (before === undefined) return message.subarray(start, end)
  if (start + before > end) return null
  const name = wholeName(message, start + before, end)
  return name && Buffer.concat([message.subarray(start, start + before), name])
}
