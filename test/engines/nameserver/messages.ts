// DNS answers for tests, read strictly by code that shares nothing with the nameserver's own.

const rcodeNames = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']
const extendedNames: Record<number, string> = { 16: 'BADVERS', 23: 'BADCOOKIE' }

export type Rr = { name: string; type: number; ttl: number; data: Buffer }
export type Message = {
  id: number
  opcode: number
  aa: boolean
  tc: boolean
  rd: boolean
  ra: boolean
  rcode: string
  question: { name: string; type: number; class: number } | null
  answer: Rr[]
  authority: Rr[]
  additional: Rr[]
  opt: { size: number; version: number; dnssecOk: boolean; options: Map<number, Buffer> } | null
  size: number
}

/** Labels joined by dots, case as it came; pointers followed. */
function readName(message: Buffer, start: number): { name: string; octets: Buffer; end: number } {
  const labels: Buffer[] = []
  let at = start
  let end = -1
  for (let hops = 0; ; ) {
    const length = message.readUInt8(at)
    if (length === 0) break
    if (length >= 0xc0) {
      if (++hops > 20) throw new Error('pointer loop')
      const target = message.readUInt16BE(at) & 0x3fff
      if (target >= at) throw new Error('pointer forwards')
      end = end < 0 ? at + 2 : end
      at = target
      continue
    }
    if (length > 63) throw new Error('not a label')
    labels.push(message.subarray(at + 1, at + 1 + length))
    at += 1 + length
  }
  const octets = Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), label]), Buffer.from([0])])
  return { name: labels.map((label) => label.toString('latin1')).join('.') || '.', octets, end: end < 0 ? at + 1 : end }
}

const namesIn: Record<number, { at: number; count: number }> = {
  2: { at: 0, count: 1 },
  5: { at: 0, count: 1 },
  6: { at: 0, count: 2 },
  15: { at: 2, count: 1 },
}

function lowered(octets: Buffer): Buffer {
  return Buffer.from(octets.toString('latin1').toLowerCase(), 'latin1')
}

export function readMessage(message: Buffer): Message {
  const flags = message.readUInt16BE(2)
  if ((flags & 0x8000) === 0) throw new Error('not an answer')
  let at = 12
  let asked: Message['question'] = null
  if (message.readUInt16BE(4) === 1) {
    const { name, end } = readName(message, at)
    asked = { name, type: message.readUInt16BE(end), class: message.readUInt16BE(end + 2) }
    at = end + 4
  }
  let opt: Message['opt'] = null
  let extended = 0
  const sections = [6, 8, 10].map((count) => {
    const found: Rr[] = []
    for (let left = message.readUInt16BE(count); left > 0; left--) {
      const { name, end } = readName(message, at)
      const type = message.readUInt16BE(end)
      const ttl = message.readUInt32BE(end + 4)
      const length = message.readUInt16BE(end + 8)
      let data = message.subarray(end + 10, end + 10 + length)
      if (data.length !== length) throw new Error('cut off')
      at = end + 10 + length
      if (type === 41) {
        const options = new Map<number, Buffer>()
        for (let from = 0; from < data.length; ) {
          const size = data.readUInt16BE(from + 2)
          options.set(data.readUInt16BE(from), data.subarray(from + 4, from + 4 + size))
          from += 4 + size
        }
        extended = ttl >>> 24
        const size = message.readUInt16BE(end + 2)
        opt = { size, version: (ttl >>> 16) & 0xff, dnssecOk: (ttl & 0x8000) !== 0, options }
        continue
      }
      const names = namesIn[type]
      if (names) {
        const parts = [data.subarray(0, names.at)]
        let from = end + 10 + names.at
        for (let index = 0; index < names.count; index++) {
          const read = readName(message, from)
          parts.push(lowered(read.octets))
          from = read.end
        }
        data = Buffer.concat([...parts, message.subarray(from, at)])
      }
      found.push({ name, type, ttl, data })
    }
    return found
  })
  if (at !== message.length) throw new Error(`${message.length - at} octets after the end`)
  const code = (extended << 4) | (flags & 0x0f)
  return {
    id: message.readUInt16BE(0),
    opcode: (flags >> 11) & 0x0f,
    aa: (flags & 0x0400) !== 0,
    tc: (flags & 0x0200) !== 0,
    rd: (flags & 0x0100) !== 0,
    ra: (flags & 0x0080) !== 0,
    rcode: extendedNames[code] ?? rcodeNames[code] ?? String(code),
    question: asked,
    answer: sections[0]!,
    authority: sections[1]!,
    additional: sections[2]!,
    opt,
    size: message.length,
  }
}
