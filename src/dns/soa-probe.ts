// Queries a nameserver for the serial of a zone. The answer is untrusted until it is checked.
import { randomInt } from 'node:crypto'
import { listenAddress, reachableHost } from './listen-address.ts'
import { type ExchangeFailure, exchangeOverUdp } from './packet/exchange.ts'
import { encodeQuestion, isAnswerTo, rcodeOf, readRecord } from './packet/message.ts'
import { rcodes, typeNumbers } from './packet/numbers.ts'

export type ProbeError = Exclude<ExchangeFailure, 'malformed'> | 'not_served' | 'invalid_answer'
export type Probe = { serial: number; error: null } | { serial: null; error: ProbeError }

// Every SOA ends with serial, refresh, retry, expire and minimum.
const soaTailOctets = 20

export function soaQuery(zone: string, id: number): Buffer {
  return encodeQuestion(zone, { id, type: typeNumbers.SOA, recursive: false })!
}

/** The serial in an answer; null for a packet that doesn't answer the query. */
export function readSoaAnswer(packet: Buffer, query: Buffer): Probe | null {
  if (!isAnswerTo(packet, query)) return null
  if (rcodeOf(packet) !== rcodes.NOERROR) return { serial: null, error: 'not_served' }
  let at = query.length
  for (let left = packet.readUInt16BE(6); left > 0; left--) {
    const record = readRecord(packet, at)
    if (!record) return { serial: null, error: 'invalid_answer' }
    if (record.type === typeNumbers.SOA && record.end - record.dataStart >= soaTailOctets + 2) {
      return { serial: packet.readUInt32BE(record.end - soaTailOctets), error: null }
    }
    at = record.end
  }
  return { serial: null, error: 'not_served' }
}

/** Never throws: that a nameserver doesn't answer is a result, not a failure. */
export async function probeSoa(address: string, zone: string, timeoutMs = 1_000): Promise<Probe> {
  const { host, port } = listenAddress(address)
  const query = soaQuery(zone, randomInt(0x10000))
  const answer = await exchangeOverUdp({ host: reachableHost(host), port }, query, { timeoutMs })
  if (typeof answer !== 'string') return readSoaAnswer(answer, query)!
  return { serial: null, error: answer === 'malformed' ? 'invalid_answer' : answer }
}
