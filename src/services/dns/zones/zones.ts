// Whole zones: consistent reads, export as a zone file, and generated records.
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

// Secondaries are notified until they have a change, so the timers only matter during failures. `minimum` is how long
// resolvers cache that a name does not exist; it is short, so new records appear quickly.
export const soaTimers = { refresh: 600, retry: 300, expire: 604_800, minimum: 60, ttl: 3600 } as const

/** The TTL of generated addresses; short, because a record of the zone can replace them. */
export const generatedTtl = 60
export const generatedNames = ['@', 'www'] as const
const addressTypes = new Set(['A', 'AAAA', 'ALIAS', 'CNAME'])

export function soaOf({ nameservers }: Pick<Config, 'nameservers'>, zone: string) {
  return { mname: nameservers[0]!, rname: `hostmaster.${zone}`, ...soaTimers }
}

export type EdgeAddresses = { edge: Pick<Config['edge'], 'addresses'> }

/** The records that the nameservers generate: edge addresses for names without their own. */
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
 * Yields to other work between steps, and throws if the work was canceled. With `locked`, it does not sleep, because
 * others wait for the lock of the zone.
 */
export type Pace = (locked?: 'locked') => Promise<void>

// About 20 ms of work for the database and the reader.
const pageSize = 2_000

/** Reads all records of a zone, consistently if in a transaction. */
export async function readWholeZone(connection: Db, zone: Zone, pace: Pace): Promise<RecordRow[]> {
  const records: RecordRow[] = []
  for (;;) {
    const last = records.at(-1)
    const after = { afterName: last?.name ?? '', afterId: last?.id ?? '' }
    const page = await selectRecordPage(connection, { zoneId: zone.id, ...after, limit: pageSize })
    for (const row of page) records.push(row)
    if (page.length < pageSize) return records
    await pace()
  }
}

/** Reads a zone with all its records in one snapshot. */
export function readZoneSnapshot(
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

/** The ETag of a zone, from its serial and the settings on which its zone file depends. */
export function zoneEtag(zone: Zone, { nameservers, edge }: ExportOptions): string {
  const { id, serial } = zone
  const rest = hash('sha1', JSON.stringify([id, zone.nameservers, nameservers, edge.addresses, version]), 'base64url')
  return `"${serial}-${rest.slice(0, 12)}"`
}

/** The maximum size of a zone file. */
export const zoneFileLimitBytes = 16 * 1024 * 1024

export type ExportOptions = Pick<Config, 'nameservers'> & EdgeAddresses

export type ZoneExport = { actor: Actor; path: string; options: ExportOptions }

/** Exports a zone as a zone file. */
export async function exportText(
  connection: Db,
  { actor, path, options }: ZoneExport,
  pace: Pace,
): Promise<{ text: string; etag: string }> {
  const { zone, records } = await readZoneSnapshot(connection, actor, path, pace)
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
  // An export must be small enough to import again.
  const bare = records.map((record) => ({ ...record, comment: null }))
  const comments = ['The comments of the records are omitted, because the file would be too large with them.']
  return { text: writeZoneFile({ ...file, records: bare, comments }), etag: zoneEtag(zone, options) }
}
