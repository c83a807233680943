// Enforces the limits of tokens and keys to parts of zones.
import type { Prisma } from '../../../generated/client.ts'
import { Fault } from '../../../platform/errors.ts'
import { type Actor, hasRecord, isWhole, type ZonePart } from '../../identity/index.ts'

type RecordName = { name: string; type: string }

/** The parts of a zone that the actor has; null for the whole zone. */
function partsOf({ zoneParts }: Actor, zoneId: string): readonly ZonePart[] | null {
  if (!zoneParts) return null
  const parts = zoneParts.filter(({ domainId }) => domainId === zoneId)
  return parts.some(isWhole) ? null : parts
}

/** The actor does not see a zone of which it has no part. */
export function seesZone(actor: Actor, zoneId: string): boolean {
  return partsOf(actor, zoneId)?.length !== 0
}

export function seesWholeZone(actor: Actor, zoneId: string): boolean {
  return partsOf(actor, zoneId) === null
}

export function mayTouch(actor: Actor, zoneId: string, record: RecordName): boolean {
  return partsOf(actor, zoneId)?.some((part) => hasRecord(part, record)) ?? true
}

/** Throws for the first record outside the actor's parts. */
export function requireRecords(actor: Actor, zoneId: string, records: Iterable<RecordName>): void {
  const parts = partsOf(actor, zoneId)
  if (!parts) return
  for (const record of records) {
    if (parts.some((part) => hasRecord(part, record))) continue
    throw new Fault(
      'token_limited_to_records',
      `The token cannot access records of type ${record.type} at ${record.name}.`,
    )
  }
}

export function requireWholeZone(actor: Actor, zoneId: string): void {
  if (partsOf(actor, zoneId)) throw new Fault('token_limited_to_records', 'The token cannot access the whole zone.')
}

// Escapes wildcards of SQL patterns.
const literal = (text: string) => text.replace(/[\\%_]/g, '\\$&')

function named(pattern: string): Prisma.DnsRecordWhereInput {
  if (pattern === '*') return { name: { not: '@' } }
  if (pattern.endsWith('.*')) return { name: { startsWith: literal(pattern.slice(0, -1)) } }
  if (pattern.startsWith('*.')) return { name: { endsWith: literal(pattern.slice(1)) } }
  return { name: pattern }
}

/** Matches records within the actor's parts of the zone. */
export function recordsWithin(actor: Actor, zoneId: string): Prisma.DnsRecordWhereInput {
  const parts = partsOf(actor, zoneId)
  if (!parts) return {}
  return {
    OR: parts.map(({ names, types }) => ({
      ...(types.length > 0 && { type: { in: [...types] } }),
      ...(names.length > 0 && { OR: names.map(named) }),
    })),
  }
}
