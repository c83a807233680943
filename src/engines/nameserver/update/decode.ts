// Decodes the sections of an update (RFC 2136, section 2) from an untrusted message.
import { nameWithinZone, relativeName } from '../../../dns/names.ts'
import { readRecord, type WireRecord } from '../../../dns/packet/message.ts'
import { classAny, classIn, classNone, headerOctets, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { type NameCache, readName } from '../../../dns/packet/wire-names.ts'
import { parseRdata } from '../../../dns/rdata/rdata.ts'
import { genericValue } from '../../../dns/rdata/rdata-generic.ts'
import { isRecordType, typeInZoneFile } from '../../../dns/type-names.ts'
import type { Prerequisite, UpdateStep } from '../../../services/dns/index.ts'
import { expandedRdata } from './rdata.ts'

/** An error in the message, with its rcode. */
export class UpdateFault extends Error {
  readonly rcode: number

  constructor(rcode: number) {
    super(`rcode ${rcode}`)
    this.rcode = rcode
  }
}

/** What a message wants to do in a zone. */
export type DecodedUpdate = { zone: string; prerequisites: Prerequisite[]; steps: UpdateStep[] }

/** As many records as we can process without delaying others; messages with more are refused. */
export const maxRecords = 250

type Rr = WireRecord & { name: string; ttl: number; empty: boolean }

/** The name of the zone, and where the prerequisites start. */
export function readZone(message: Buffer): { zone: string; end: number } {
  if (message.length < headerOctets || message.readUInt16BE(4) !== 1) throw new UpdateFault(rcodes.FORMERR)
  const { name, end } = nameAt(message, headerOctets)
  if (end + 4 > message.length || message.readUInt16BE(end) !== typeNumbers.SOA) throw new UpdateFault(rcodes.FORMERR)
  if (message.readUInt16BE(end + 2) !== classIn) throw new UpdateFault(rcodes.NOTAUTH)
  return { zone: name, end: end + 4 }
}

function nameAt(message: Buffer, start: number, known?: NameCache): { name: string; end: number } {
  try {
    return readName(message, start, known)
  } catch {
    throw new UpdateFault(rcodes.FORMERR)
  }
}

/** Decodes the message up to `end`, where the TSIG starts. Throws the fault of the first invalid record. */
export function decodeUpdate(message: Buffer, end: number): DecodedUpdate {
  const { zone, end: start } = readZone(message)
  const counts = [message.readUInt16BE(6), message.readUInt16BE(8)] as const
  if (counts[0] + counts[1] > maxRecords) throw new UpdateFault(rcodes.REFUSED)
  const signed = message.subarray(0, end)
  const known: NameCache = new Map()
  let at = start
  const next = (): Rr => {
    const record = readRecord(signed, at)
    if (!record) throw new UpdateFault(rcodes.FORMERR)
    at = record.end
    const { name } = nameAt(signed, record.start, known)
    if (nameWithinZone(name, zone) === null) throw new UpdateFault(rcodes.NOTZONE)
    const ttl = signed.readUInt32BE(record.dataStart - 6)
    return { ...record, name: storedName(name, zone), ttl, empty: record.end === record.dataStart }
  }
  const prerequisites = Array.from({ length: counts[0] }, () => prerequisiteOf(signed, zone, next()))
  const steps = Array.from({ length: counts[1] }, () => stepOf(signed, zone, next()))
  return { zone, prerequisites, steps }
}

/** The name as stored. A name that can't be stored stays as it is: nothing exists there, and the record rules refuse it. */
function storedName(name: string, zone: string): string {
  const relative = relativeName(`${name}.`, zone)
  return relative.ok ? relative.value : `${name}.`
}

/** Our name for a type, or its number if zones can't contain it. */
function typeName(number: number): string {
  const type = typeInZoneFile(`TYPE${number}`)
  return type === 'SOA' || isRecordType(type) ? type : `TYPE${number}`
}

// OPT, and the types that only exist in questions and messages (RFC 6895, section 3.1).
const isMeta = (type: number) => type === 0 || type === typeNumbers.OPT || (type >= 128 && type <= 255)

/** The value as stored; null if a zone here can't contain it. */
function storedValue(message: Buffer, zone: string, { type: number, dataStart, end }: Rr): string | null {
  const type = typeName(number)
  const octets = expandedRdata(message, number, { start: dataStart, end })
  if (octets === null) throw new UpdateFault(rcodes.FORMERR)
  if (!isRecordType(type)) return null
  const value = parseRdata(type, genericValue(octets), zone)
  return value.ok ? value.value : null
}

function prerequisiteOf(message: Buffer, zone: string, rr: Rr): Prerequisite {
  const { name, ttl, empty } = rr
  if (ttl !== 0) throw new UpdateFault(rcodes.FORMERR)
  if (rr.class === classAny || rr.class === classNone) {
    const exists = rr.class === classAny
    if (!empty) throw new UpdateFault(rcodes.FORMERR)
    if (rr.type === typeNumbers.ANY) return { name, type: null, exists }
    if (isMeta(rr.type)) throw new UpdateFault(rcodes.FORMERR)
    return { name, type: typeName(rr.type), exists }
  }
  if (rr.class !== classIn || isMeta(rr.type)) throw new UpdateFault(rcodes.FORMERR)
  return { name, type: typeName(rr.type), value: storedValue(message, zone, rr) }
}

function stepOf(message: Buffer, zone: string, rr: Rr): UpdateStep {
  const { name, ttl, empty } = rr
  const isAny = rr.type === typeNumbers.ANY
  if (isMeta(rr.type) && !(isAny && rr.class === classAny)) throw new UpdateFault(rcodes.FORMERR)
  const type = typeName(rr.type)
  if (rr.class === classIn) {
    // RFC 2181, section 8: a TTL has 31 bits; with the highest bit set it counts as zero.
    return { name, add: true, type, value: storedValue(message, zone, rr), ttl: ttl > 0x7fff_ffff ? 0 : ttl }
  }
  if (ttl !== 0) throw new UpdateFault(rcodes.FORMERR)
  if (rr.class === classNone) return { name, add: false, type, value: storedValue(message, zone, rr) }
  if (rr.class !== classAny || !empty) throw new UpdateFault(rcodes.FORMERR)
  return { name, add: false, type: isAny ? null : type }
}
