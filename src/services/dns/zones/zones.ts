// Zones as a whole: read from one moment, written as a zone file, and the records that the service adds itself.
import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Config } from '../../../config.ts'
import { writeZoneFile } from '../../../dns/zone-files/zone-file-writer.ts'
import { type Db, transactionOn } from '../../../platform/database/database.ts'
import { version } from '../../../platform/version.ts'
import { nameserversOf } from '../../domains/index.ts'
import type { Actor } from '../../identity/index.ts'
import { openZone, type RecordRow, type Zone } from '../records/dns-records.ts'
import { requireWholeZone } from '../records/within-parts.ts'
import { selectRecordPage } from '../sql/zone-statements.ts'

// Secondaries are told of every change until they have it, so the timers only matter when something is broken. The minimum
// is how long resolvers remember that a name does not exist: a record that was just made should not wait for long.
export const soaTimers = { refresh: 600, retry: 300, expire: 604_800, minimum: 60, ttl: 3600 } as const

/** TTL of the addresses that the nameservers add to a zone; short, because a record of the zone replaces them. */
export const generatedTtl = 60
export const generatedNames = ['@', 'www'] as const
const addressTypes = new Set(['A', 'AAAA', 'ALIAS', 'CNAME'])

export function soaOf({ nameservers }: Pick<Config, 'nameservers'>, zone: string) {
  return { mname: nameservers[0]!, rname: `hostmaster.${zone}`, ...soaTimers }
}

export type EdgeAddresses = { edge: Pick<Config['edge'], 'addresses'> }

/** Records that the nameservers add: the addresses of the edge, where the zone has none of its own. */
export function generatedRecords(
  { edge }: EdgeAddresses,
  records: Iterable<{ name: string; type: string }>,
): { name: string; type: 'A' | 'AAAA'; value: string; ttl: number }[] {
  const addressed = new Set<string>()
  for (const { name, type } of records) {
    if (addressTypes.has(type)) addressed.add(name)
    // A DNAME record of the domain itself answers for www.
    if (type === 'DNAME' && name === '@') addressed.add('www')
  }
  return generatedNames
    .filter((name) => !addressed.has(name))
    .flatMap((name) =>
      edge.addresses.map((value) => ({
        name,
        type: isIPv6(value) ? ('AAAA' as const) : ('A' as const),
        value,
        ttl: generatedTtl,
      })),
    )
}

/**
 * Lets other work go on between two steps, and throws when nobody waits for the result any more. It does not rest where
 * others wait for the end, because the zone is locked.
 */
export type Pace = (locked?: 'locked') => Promise<void>

// Some 20 ms of the database and of the reader.
const recordsInAPage = 2_000

/** All records of a zone; within a transaction, from one moment. */
export async function readWholeZone(connection: Db, zone: Zone, pace: Pace): Promise<RecordRow[]> {
  const records: RecordRow[] = []
  for (;;) {
    const last = records.at(-1)
    const after = { afterName: last?.name ?? '', afterId: last?.id ?? '' }
    const page = await selectRecordPage(connection, { zoneId: zone.id, ...after, limit: recordsInAPage })
    for (const row of page) records.push(row)
    if (page.length < recordsInAPage) return records
    await pace()
  }
}

/** A zone with all its records, as they belong together. */
export function readZoneAtOnce(
  connection: Db,
  actor: Actor,
  path: string,
  pace: Pace,
): Promise<{ zone: Zone; records: RecordRow[] }> {
  const read = async () => {
    const zone = await openZone(connection, actor, path)
    requireWholeZone(actor, zone.id)
    return { zone, records: await readWholeZone(connection, zone, pace) }
  }
  return transactionOn(connection, read, 'ISOLATION LEVEL REPEATABLE READ READ ONLY')
}

/** The version of a zone: its serial, and what else its zone file is written from. */
export function zoneEtag(zone: Zone, { nameservers, edge }: ExportOptions): string {
  const { id, serial } = zone
  const rest = hash('sha1', JSON.stringify([id, zone.nameservers, nameservers, edge.addresses, version]), 'base64url')
  return `"${serial}-${rest.slice(0, 12)}"`
}

/** The largest zone file that is taken. */
export const zoneFileLimitBytes = 16 * 1024 * 1024

export type ExportOptions = Pick<Config, 'nameservers'> & EdgeAddresses

export type ZoneExport = { actor: Actor; path: string; options: ExportOptions }

/** The zone as a zone file. */
export async function exportText(
  connection: Db,
  { actor, path, options }: ZoneExport,
  pace: Pace,
): Promise<{ text: string; etag: string }> {
  const { zone, records } = await readZoneAtOnce(connection, actor, path, pace)
  await pace()
  const nameservers = nameserversOf(options.nameservers, zone.nameservers)
  const file = {
    zone: zone.name,
    serial: zone.serial,
    nameservers,
    soa: soaOf({ nameservers }, zone.name),
    records,
    generated: generatedRecords(options, records),
  }
  const text = writeZoneFile(file)
  if (Buffer.byteLength(text) <= zoneFileLimitBytes) return { text, etag: zoneEtag(zone, options) }
  // An import must be able to take back what an export gives.
  const bare = records.map((record) => ({ ...record, comment: null }))
  const comments = ['The comments of the records are omitted, because the file would be too large with them.']
  return { text: writeZoneFile({ ...file, records: bare, comments }), etag: zoneEtag(zone, options) }
}
