// What the present nameservers of a domain have that its zone here lacks, as a batch that adds it.
import type { Static } from '@sinclair/typebox'
import { conflict } from '../../dns/conflicts.ts'
import type { RecordType } from '../../dns/record-types.ts'
import type { Db } from '../../platform/database.ts'
import type { Discovery } from '../../schemas/discovery.ts'
import { highestBatchSize } from '../../schemas/dns-records.ts'
import type { Actor } from '../tokens/actor.ts'
import { findZone } from './dns-records.ts'
import { requireWholeZone } from './within-parts.ts'
import { selectRecordsByName } from './zone-statements.ts'

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

const highestShown = 500
const websiteNames = new Set(['@', 'www'])
const websiteTypes = new Set<RecordType>(['A', 'AAAA', 'CNAME', 'ALIAS', 'HTTPS'])

/** Compares what was found with the zone as it is now. */
export async function compareDiscovered(
  db: Db,
  actor: Actor,
  path: string,
  { nameservers, method, questions, records, skipped, reason }: Discovered,
): Promise<Static<typeof Discovery>> {
  const zone = await findZone(db, actor, path)
  const names = [...new Set(records.map(({ name }) => name))]
  const existing = names.length > 0 ? await selectRecordsByName(db, { zoneId: zone.id, names }) : []
  const beside = Map.groupBy<string, { name: string; type: RecordType; value: string }>(existing, ({ name }) => name)
  const create: FoundRecord[] = []
  const conflicts: Static<typeof Discovery>['conflicts'] = []
  for (const record of records) {
    const { name, type, value, ttl } = record
    const here = beside.get(name) ?? []
    const found = conflict({ name, type, value }, here)
    if (found?.code === 'duplicate') continue
    if (found) {
      conflicts.push({ type, name, value, ttl, reason: found.detail })
      continue
    }
    create.push({ type, name, value, ttl })
    beside.set(name, [...here, record])
  }
  const website = create.some(({ name, type }) => websiteNames.has(name) && websiteTypes.has(type))
  return {
    domain: zone.name,
    nameservers: nameservers.slice(0, highestShown),
    method,
    questions,
    found: records.length,
    changes: { create: create.slice(0, highestBatchSize) },
    conflicts: conflicts.slice(0, highestShown),
    skipped: skipped.slice(0, highestShown),
    truncated: create.length > highestBatchSize || conflicts.length > highestShown || skipped.length > highestShown,
    notes: website
      ? ['Addresses at @ and www keep visitors where they go now. Leave them out, and they are served from here.']
      : [],
    reason,
  }
}
