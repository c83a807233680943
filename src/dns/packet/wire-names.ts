// Domain names in packets: labels with their lengths, and compression pointers to earlier names.
import { maxLabelOctets, maxNameOctets, maxPointers } from './numbers.ts'

// Lengths of labels are below 64 and letters above, so a whole name can be folded octet by octet.
export const lowerCase: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet >= 0x41 && octet <= 0x5a ? octet + 0x20 : octet,
)

/**
 * Converts text to the form used as a key everywhere: the name's octets on the wire, in lower case, as a binary string. In
 * the text, octets that don't belong in a host name are written as `\\DDD`, including dots within a label.
 */
export function wireName(text: string): string {
  if (text === '.' || text === '') return '\0'
  let wire = ''
  const folded = text.toLowerCase()
  for (let start = 0; start < folded.length; ) {
    const dot = folded.indexOf('.', start)
    const end = dot < 0 ? folded.length : dot
    const label = folded.slice(start, end)
    const octets = label.includes('\\') ? label.replace(/\\(\d{3})/g, (_, code) => String.fromCharCode(code)) : label
    wire += String.fromCharCode(octets.length) + octets
    start = end + 1
  }
  return `${wire}\0`
}

export function textName(wire: string): string {
  const labels: string[] = []
  for (let at = 0; at < wire.length - 1; at += 1 + wire.charCodeAt(at)) {
    const label = wire.slice(at + 1, at + 1 + wire.charCodeAt(at))
    labels.push(/[^!-[\]-~]|\./.test(label) ? printable(Buffer.from(label, 'latin1'), '. \\') : label)
  }
  return labels.length === 0 ? '.' : labels.join('.')
}

/**
 * The end of the name at `start`; -1 if it is invalid. A pointer ends a name and isn't followed, which rules out loops. It
 * must point backwards, because the next reader of the packet may follow it.
 */
export function skipName(message: Buffer, start: number): number {
  for (let at = start; at - start <= maxNameOctets; ) {
    const length = message[at]
    if (length === undefined) return -1
    if (length === 0) return at + 1
    if (length >= 0xc0) {
      if (at + 2 > message.length || (message.readUInt16BE(at) & 0x3fff) >= start) return -1
      return at + 2
    }
    if (length > maxLabelOctets) return -1
    at += 1 + length
  }
  return -1
}

/** Octets as printable text: nonprintable ones and those in `special` are escaped as `\\DDD`. */
export function printable(octets: Buffer, special: string): string {
  let text = ''
  for (const octet of octets) {
    const character = String.fromCharCode(octet)
    const plain = octet >= 0x20 && octet < 0x7f && !special.includes(character)
    text += plain ? character : `\\${octet.toString().padStart(3, '0')}`
  }
  return text
}

/** `name` is lower case without a trailing dot, and empty for the root; `wire` is in the form of `wireName`. */
export type DecodedName = { name: string; wire: string }

/** Names already read from a message, by their offsets, because compressed names share most of their labels. */
export type NameCache = Map<number, DecodedName>

const root: DecodedName = { name: '', wire: '\0' }

/** Reads the name at `start` and follows pointers. Names of one message that share `known` take linear time. */
export function readName(message: Buffer, start: number, known: NameCache = new Map()): DecodedName & { end: number } {
  const labels: number[] = []
  let read: DecodedName | undefined
  let at = start
  let end = -1
  let runStart = start
  for (let pointers = 0; !read; ) {
    const length = message.readUInt8(at)
    if (length >= 0xc0) {
      const target = message.readUInt16BE(at) & 0x3fff
      // Every pointer must point further back than the last, which rules out loops.
      if (target >= runStart) throw new RangeError('a pointer leads forwards')
      if (++pointers > maxPointers) throw new RangeError('a name has too many pointers')
      if (end < 0) end = at + 2
      at = runStart = target
      read = known.get(at)
      continue
    }
    if (length > maxLabelOctets) throw new RangeError('not a label')
    if (length === 0) read = root
    else if (labels.push(at) > maxNameOctets / 2) throw new RangeError('a name is too long')
    at += 1 + length
  }
  for (const labelAt of labels.reverse()) {
    read = withLabel(message, labelAt, read)
    known.set(labelAt, read)
  }
  return { ...read, end: end < 0 ? at : end }
}

function withLabel(message: Buffer, at: number, { name, wire }: DecodedName): DecodedName {
  const end = at + 1 + message[at]!
  if (end - at + wire.length > maxNameOctets || end > message.length) throw new RangeError('a name is too long')
  const label = printable(message.subarray(at + 1, end), '. \\').toLowerCase()
  const octets = message.toString('latin1', at, end).replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return { name: name === '' ? label : `${label}.${name}`, wire: octets + wire }
}
