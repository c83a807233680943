// Queries a zone's primary for its serial, and for all records as lines of a zone file.
import { randomInt } from 'node:crypto'
import { type AxfrOptions, fetchZone, type TransferFailure } from '../../dns/packet/axfr.ts'
import { type ExchangeFailure, exchangeOverTcp, exchangeOverUdp } from '../../dns/packet/exchange.ts'
import { encodeQuestion, flagsOf, hasQuestion, isTruncated, rcodeOf } from '../../dns/packet/message.ts'
import { classIn, flags, rcodes, typeNumbers } from '../../dns/packet/numbers.ts'
import { type DecodedRecord, readRecords } from '../../dns/packet/records.ts'
import { signRequest } from '../../dns/packet/tsig.ts'
import { createPauses } from '../../platform/pauses.ts'
import type { Followed } from '../../services/dns/index.ts'

export type Soa = { serial: number; refreshSeconds: number; retrySeconds: number }
export type Failure = ExchangeFailure | TransferFailure | 'not_served'

const answerTimeoutMs = 3_000
const resendMs = 1_000
const transferTimeoutMs = 60_000
// The limit for zone files.
const maxOctets = 16 * 1024 * 1024

/** Serial, refresh and retry are the first three of the five numbers at the end. */
export function readSoa({ rdata }: DecodedRecord): Soa | null {
  if (rdata.length < 22) return null
  const at = rdata.length - 20
  const [serial, refreshSeconds, retrySeconds] = [0, 4, 8].map((offset) => rdata.readUInt32BE(at + offset))
  return { serial: serial!, refreshSeconds: refreshSeconds!, retrySeconds: retrySeconds! }
}

export async function askSoa({ name, server, key }: Followed, signal: AbortSignal): Promise<Soa | Failure> {
  const question = encodeQuestion(name, { id: randomInt(0x10000), type: typeNumbers.SOA, recursive: false })
  if (!question) return 'malformed'
  const ask = async (exchange: typeof exchangeOverTcp, more: object): Promise<Buffer | Failure> => {
    const { query, verifier } = signRequest(question, key)
    const packet = await exchange(server, query, { timeoutMs: answerTimeoutMs, signal, ...more })
    if (typeof packet === 'string' || !verifier || verifier.verify(packet)) return packet
    return rcodeOf(packet) === rcodes.NOERROR ? 'badly_signed' : 'refused'
  }
  let packet = await ask(exchangeOverUdp, { resendMs })
  if (typeof packet !== 'string' && isTruncated(packet)) packet = await ask(exchangeOverTcp, {})
  if (typeof packet === 'string') return packet
  if (rcodeOf(packet) !== rcodes.NOERROR || !hasQuestion(packet)) return 'refused'
  if ((flagsOf(packet) & flags.authoritative) === 0) return 'not_served'
  try {
    const { records } = readRecords(packet, question.length, packet.readUInt16BE(6))
    const soa = records.find((record) => record.type === typeNumbers.SOA && record.name === name)
    return (soa && readSoa(soa)) ?? 'not_served'
  } catch {
    return 'malformed'
  }
}

export type Version = { soa: Soa; text: string }

// DNSSEC types: the zone is signed again here.
const signatureTypes = new Set<number>([46, 47, 48, 50, 51, 59, 60, 63])

/** Escapes special characters by number. Unprintable ones are already escaped. */
const escaped = (name: string) =>
  name.replace(/[^A-Za-z0-9._*\\-]/g, (octet) => `\\${String(octet.charCodeAt(0)).padStart(3, '0')}`)

/** The records in generic form (RFC 3597), without those that our zones provide themselves. */
export async function linesOf(zone: string, records: readonly DecodedRecord[]): Promise<string> {
  const pauses = createPauses()
  const lines: string[] = []
  for (const { name, type, class: kind, ttl, rdata } of records) {
    const pause = pauses()
    if (pause) await pause
    if (kind !== classIn || type === typeNumbers.SOA || signatureTypes.has(type)) continue
    if (type === typeNumbers.NS && name === zone) continue
    lines.push(`${escaped(name)}. ${ttl} IN TYPE${type} \\# ${rdata.length} ${rdata.toString('hex')}`)
  }
  return `${lines.join('\n')}\n`
}

export async function transferZone(
  { name, server, key }: Followed,
  maxRecords: number,
  signal: AbortSignal,
): Promise<Version | Failure> {
  const bounds: AxfrOptions = { timeoutMs: transferTimeoutMs, maxOctets, maxRecords, key, signal }
  const records = await fetchZone(server, name, bounds)
  if (typeof records === 'string') return records
  const soa = readSoa(records[0]!)
  return soa ? { soa, text: await linesOf(name, records) } : 'malformed'
}
