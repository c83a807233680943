// Asks a nameserver over UDP for the serial of a zone. Whatever comes back is held to be hostile until it is checked.
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'

export type ProbeError = 'timeout' | 'refused' | 'unreachable' | 'not_served' | 'invalid_answer'
export type Probe = { serial: number; error: null } | { serial: null; error: ProbeError }

const typeSoa = 6
const classIn = 1
const headerOctets = 12
// Serial, refresh, retry, expire and minimum end every SOA.
const soaTailOctets = 20

export function soaQuery(zone: string, id: number): Buffer {
  const labels = zone.split('.').map((label) => Buffer.from(label, 'latin1'))
  const question = labels.flatMap((label) => [Buffer.from([label.length]), label])
  const header = Buffer.alloc(headerOctets)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(1, 4)
  return Buffer.concat([header, ...question, Buffer.from([0, 0, typeSoa, 0, classIn])])
}

/** Where the name at `at` ends. A pointer ends a name wherever it leads, so it is never followed. */
function skipName(message: Buffer, at: number): number {
  for (let next = at; ; ) {
    const length = message.readUInt8(next)
    if (length === 0) return next + 1
    if (length >= 0xc0) return next + 2
    if (length > 63) throw new RangeError('not a label')
    next += 1 + length
  }
}

/** The serial in an answer; null for a message that does not answer the query at all. */
export function readSoaAnswer(message: Buffer, query: Buffer): Probe | null {
  const isAnswer = message.length >= query.length && message.readUInt16BE(0) === query.readUInt16BE(0)
  if (!isAnswer || (message[2]! & 0x80) === 0) return null
  const refused: Probe = { serial: null, error: 'not_served' }
  const code = message[3]! & 0x0f
  // Letters of a name may come back in another case.
  const asked = (buffer: Buffer) => buffer.toString('latin1', headerOctets, query.length).toLowerCase()
  if (message.readUInt16BE(4) !== 1 || asked(message) !== asked(query)) return code === 0 ? null : refused
  if (code !== 0) return refused
  try {
    let at = query.length
    for (let left = message.readUInt16BE(6); left > 0; left--) {
      at = skipName(message, at)
      const type = message.readUInt16BE(at)
      const length = message.readUInt16BE(at + 8)
      const end = at + 10 + length
      if (end > message.length) throw new RangeError('cut off')
      if (type === typeSoa && length >= soaTailOctets + 2) {
        return { serial: message.readUInt32BE(end - soaTailOctets), error: null }
      }
      at = end
    }
    return refused
  } catch {
    return { serial: null, error: 'invalid_answer' }
  }
}

function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  // What listens everywhere is asked at home.
  const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1', '': '127.0.0.1' }
  return { host: everywhere[host] ?? host, port: Number(address.slice(colon + 1)) }
}

const errorCodes: Record<string, ProbeError> = { ECONNREFUSED: 'refused' }

/** Never throws: a nameserver that does not answer is a finding, not a failure. */
export function probeSoa(address: string, zone: string, timeoutMs = 1_000): Promise<Probe> {
  const { host, port } = splitAddress(address)
  const query = soaQuery(zone, randomInt(0x10000))
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    const timer = setTimeout(() => finish({ serial: null, error: 'timeout' }), timeoutMs)
    let finished = false
    function finish(probe: Probe): void {
      if (finished) return
      finished = true
      clearTimeout(timer)
      socket.close()
      resolve(probe)
    }
    const fail = (error: Error & { code?: string }) =>
      finish({ serial: null, error: errorCodes[error.code ?? ''] ?? 'unreachable' })
    socket.on('error', fail)
    socket.on('message', (message) => {
      const probe = message.length < headerOctets ? null : readSoaAnswer(message, query)
      // A message that does not answer the question is somebody else's; the right one may still come.
      if (probe) finish(probe)
    })
    try {
      // A connected socket hears nobody but the one it asked, and learns when nothing listens there.
      socket.connect(port, host, () => socket.send(query, (error) => error && fail(error)))
    } catch (error) {
      fail(error as Error)
    }
  })
}
