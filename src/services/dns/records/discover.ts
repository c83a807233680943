// What the present nameservers of a domain have that its zone here lacks, as a batch that adds it.
import type { Static } from '@sinclair/typebox'
import type { RecordType } from '../../../dns/record-types.ts'
import type { Db } from '../../../platform/database/database.ts'
import { newId } from '../../../platform/ids.ts'
import type { Discovery } from '../../../schemas/discovery.ts'
import { maxBatchSize } from '../../../schemas/dns-records.ts'
import type { Actor } from '../../identity/index.ts'
import { findZone, type RecordRow, type Zone } from './dns-records.ts'
import { placementOf } from './placement.ts'
import { requireWholeZone } from './within-parts.ts'

export type FoundRecord = { name: string; type: RecordType; value: string; ttl: number }

export type Discovered = {
  nameservers: string[]
  /** Null if nobody was asked. */
  method: 'transfer' | 'questions' | null
  questions: number
  records: FoundRecord[]
  skipped: { name: string; type: string; reason: string }[]
  reason: string | null
}

/** Asks the present nameservers of a domain; what it finds is for this account. */
export type Discover = (domain: string, accountId: string) => Promise<Discovered>

/** Before anything is asked: whether the zone is the actor's. */
export async function discoverZone(db: Db, actor: Actor, path: string, discover: Discover): Promise<Discovered> {
  const zone = await findZone(db, actor, path)
  requireWholeZone(actor, zone.id)
  return discover(zone.name, actor.accountId)
}

const maxShown = 500
const websiteNames = new Set(['@', 'www'])
const leadingTypes = new Set<RecordType>(['CNAME', 'DNAME', 'NS'])
const websiteTypes = new Set<RecordType>(['A', 'AAAA', 'CNAME', 'ALIAS', 'HTTPS'])

/** Compares what was found with the zone as it is now. */
export async function compareDiscovered(
  db: Db,
  actor: Actor,
  path: string,
  { nameservers, method, questions, records, skipped, reason }: Discovered,
): Promise<Static<typeof Discovery>> {
  const zone = await findZone(db, actor, path)
  const { create, conflicts } = await placed(db, zone, records)
  const website = create.some(({ name, type }) => websiteNames.has(name) && websiteTypes.has(type))
  return {
    domain: zone.name,
    nameservers: nameservers.slice(0, maxShown),
    method,
    questions,
    found: records.length,
    changes: { create: create.slice(0, maxBatchSize) },
    conflicts: conflicts.slice(0, maxShown),
    skipped: skipped.slice(0, maxShown),
    truncated: create.length > maxBatchSize || conflicts.length > maxShown || skipped.length > maxShown,
    notes: website
      ? [
          'The addresses at @ and www keep sending visitors to where they go now. Leave them out to serve these names from here.',
        ]
      : [],
    reason,
  }
}

type Placed = { create: FoundRecord[]; conflicts: Static<typeof Discovery>['conflicts'] }

/** Those that the zone lacks and a batch takes, and those that it would refuse. */
async function placed(db: Db, zone: Zone, records: readonly FoundRecord[]): Promise<Placed> {
  const now = new Date()
  const rows = records.map((record): RecordRow => {
    return { id: newId('rec'), ...record, comment: null, createdAt: now, updatedAt: now }
  })
  const placement = await placementOf(db, zone, { placed: rows, leaving: [] })
  const conflicts: Placed['conflicts'] = []
  const refuse = ({ type, name, value, ttl }: RecordRow, reason: string) =>
    conflicts.push({ type, name, value, ttl, reason })
  const fitting = rows.filter((row) => {
    const found = placement.put(row)
    if (found && found.code !== 'duplicate') refuse(row, found.detail)
    return !found
  })
  const placementConflict = new Map(placement.settle().map(({ row, found }) => [row, found.detail]))
  const whyNot = (row: RecordRow) =>
    // A record that is here already is in the way of one of these, which others are led by.
    placementConflict.get(row) ?? (leadingTypes.has(row.type) ? placementConflict.get(null) : undefined)
  const create = fitting.filter((row) => {
    const reason = whyNot(row)
    if (reason !== undefined) refuse(row, reason)
    return reason === undefined
  })
  return { create: create.map(({ type, name, value, ttl }) => ({ type, name, value, ttl })), conflicts }
}
