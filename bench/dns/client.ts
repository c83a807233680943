// Queries a nameserver over UDP: checks that it is up and answers correctly, and detects when an answer changes.
import { createSocket } from 'node:dgram'
import { classIn, rcodes, typeNumbers } from '../../src/dns/packet/numbers.ts'
import { wireName } from '../../src/dns/packet/wire-names.ts'
import type { Query } from './mix.ts'

export type Answer = { rcode: number; answers: number; authoritative: boolean }

export type DnsClient = {
  /** Null after a timeout. */
  query(name: string, type: Query['type'], timeoutMs?: number): Promise<Answer | null>
  close(): void
}

const maxParallel = 64

/** An OPT record with DO, which requests signatures. */
const signed = Buffer.from([0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0])

export function packet(id: number, name: string, type: Query['type'], dnssecOk = false): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(dnssecOk ? 1 : 0, 10)
  const tail = Buffer.alloc(4)
  tail.writeUInt16BE(typeNumbers[type], 0)
  tail.writeUInt16BE(classIn, 2)
  return Buffer.concat([head, Buffer.from(wireName(name), 'latin1'), tail, ...(dnssecOk ? [signed] : [])])
}

/** `dnssecOk` requests signatures. */
export async function createDnsClient(port: number, address = '127.0.0.1', dnssecOk = false): Promise<DnsClient> {
  const socket = createSocket('udp4')
  const waiting = new Map<number, (answer: Answer | null) => void>()
  socket.on('message', (message) => {
    if (message.length < 12) return
    const flags = message.readUInt16BE(2)
    const answer = { rcode: flags & 15, answers: message.readUInt16BE(6), authoritative: (flags & 0x400) !== 0 }
    waiting.get(message.readUInt16BE(0))?.(answer)
  })
  // Nothing listens yet: the query times out.
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.connect(port, address, () => resolve()))
  let last = 0
  return {
    query(name, type, timeoutMs = 2_000) {
      last = (last + 1) & 0xffff
      const id = last
      return new Promise((resolve) => {
        const done = (answer: Answer | null) => {
          clearTimeout(timer)
          waiting.delete(id)
          resolve(answer)
        }
        const timer = setTimeout(done, timeoutMs, null)
        waiting.set(id, done)
        socket.send(packet(id, name, type, dnssecOk), () => {})
      })
    },
    close: () => void socket.close(),
  }
}

/**
 * Sends every query once and throws at the first wrong answer, because refusing queries for an unloaded zone is fast and
 * would improve the result. Also fills the caches.
 */
export async function expectAnswers(server: string, port: number, mix: Query[], dnssecOk = false): Promise<void> {
  const dnsClient = await createDnsClient(port, '127.0.0.1', dnssecOk)
  let next = 0
  const work = async () => {
    while (next < mix.length) {
      const { name, type, rcode, sets, ...expected } = mix[next++]!
      const answers = expected.answers + (dnssecOk ? sets : 0)
      const answer = (await dnsClient.query(name, type)) ?? (await dnsClient.query(name, type))
      if (!answer?.authoritative || answer.rcode !== rcode || answer.answers !== answers) {
        const received = answer ? JSON.stringify(answer) : 'nothing'
        throw new Error(
          `${server} answers ${name} ${type} with ${received}, not with rcode ${rcode} and ${answers} records`,
        )
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: maxParallel }, work))
  } finally {
    dnsClient.close()
  }
}

/** Polls until the server has the zone; false after the timeout. */
export async function answersWithin(port: number, zone: string, timeoutMs: number, running: () => boolean) {
  const dnsClient = await createDnsClient(port)
  const untilMs = performance.now() + timeoutMs
  try {
    while (performance.now() < untilMs && running()) {
      const answer = await dnsClient.query(zone, 'SOA', 20)
      if (answer?.rcode === rcodes.NOERROR && answer.authoritative) return true
    }
    return false
  } finally {
    dnsClient.close()
  }
}
