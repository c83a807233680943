// Keeps tokens and keys that are narrowed to parts of zones within them.
import type { Prisma } from '../../../generated/client.ts'
import { Fault } from '../../../platform/errors.ts'
import { type Actor, hasRecord, isWhole, type ZonePart } from '../../identity/index.ts'

type Placed = { name: string; type: string }

/** What the actor has of a zone; null: all of it. */
function partsOf({ zoneParts }: Actor, zoneId: string): readonly ZonePart[] | null {
  if (!zoneParts) return null
  const parts = zoneParts.filter(({ domainId }) => domainId === zoneId)
  return parts.some(isWhole) ? null : parts
}

/** A zone of which the actor has nothing is, to it, not there. */
export function seesZone(actor: Actor, zoneId: string): boolean {
  return partsOf(actor, zoneId)?.length !== 0
}

export function seesWholeZone(actor: Actor, zoneId: string): boolean {
  return partsOf(actor, zoneId) === null
}

export function mayTouch(actor: Actor, zoneId: string, record: Placed): boolean {
  return partsOf(actor, zoneId)?.some((part) => hasRecord(part, record)) ?? true
}

/** Refuses the first record that is outside. */
export function requireRecords(actor: Actor, zoneId: string, records: Iterable<Placed>): void {
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

// `_` and `%` stand for others in a pattern of SQL.
const literal = (text: string) => text.replace(/[\\%_]/g, '\\$&')

function named(pattern: string): Prisma.DnsRecordWhereInput {
  if (pattern === '*') return { name: { not: '@' } }
  if (pattern.endsWith('.*')) return { name: { startsWith: literal(pattern.slice(0, -1)) } }
  if (pattern.startsWith('*.')) return { name: { endsWith: literal(pattern.slice(1)) } }
  return { name: pattern }
}

/** The condition that a record of the zone is within what the actor has of it. */
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
