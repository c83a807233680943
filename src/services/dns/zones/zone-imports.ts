// Replaces the records of a zone with those of a zone file, all or nothing, in short statements.
import type { Static } from '@sinclair/typebox'
import type { ZoneText } from '../../../dns/zone-files/zone-file-text.ts'
import { type Db, refusedQuota, transactionOn } from '../../../platform/database/database.ts'
import { Fault, invalidField } from '../../../platform/errors.ts'
import { namesEtag } from '../../../platform/http/etags.ts'
import type { ZoneImport } from '../../../schemas/zones.ts'
import { eventOf, numbered } from '../../events/index.ts'
import type { Actor } from '../../identity/index.ts'
import { quotaFault } from '../../quotas/index.ts'
import { openZone, type RecordRow, type Zone } from '../records/dns-records.ts'
import { recordsAllowed, setRefusal } from '../records/record-limits.ts'
import { requireWholeZone } from '../records/within-parts.ts'
import { insertRecordRows } from '../sql/statements.ts'
import { allowFollowing } from '../sql/zone-primary-statements.ts'
import { deleteRecordRows, growSerialWithEvents, updateRecordRows } from '../sql/zone-statements.ts'
import { type Difference, diffZone, type PlannedFile, planFile, viewImport } from './zone-plans.ts'
import { type ExportOptions, type Pace, readWholeZone, readZoneSnapshot, zoneEtag } from './zones.ts'

/** How to replace a zone: `ifMatch` is the header with the expected version, and versions depend on `options`. */
export type Replacement = {
  dryRun: boolean
  /** Skip unsupported lines; otherwise one such line refuses the file. */
  skipUnsupported: boolean
  ifMatch: string | undefined
  options: ExportOptions
  /** The file comes from this primary, of which the zone has this version. */
  follows?: { address: string; serial: string | null }
}
export type ZoneImportRequest = Replacement & { actor: Actor; path: string; file: ZoneText }

// Rows per statement, about 50 ms, after which others can use the database.
const batchSize = 1_000
// How often an import retries if the zone changes concurrently, before it reads under the lock.
const maxAttempts = 3

type ZoneSnapshot = { zone: Zone; records: RecordRow[] }

/** Imports a file, or previews the changes. `connection` is a handle of `onConnection`. */
export async function importRecords(
  connection: Db,
  { actor, path, file: zoneText, ...replacement }: ZoneImportRequest,
  pace: Pace,
): Promise<Static<typeof ZoneImport>> {
  const { dryRun, skipUnsupported } = replacement
  const opened = await openZone(connection, actor, path)
  const { name } = opened
  requireWholeZone(actor, opened.id)
  // An early check before parsing the file; the check under the lock counts.
  requireVersion(replacement, opened, opened.records > 0)
  const limits = await recordsAllowed(connection, actor.accountId)
  const steps = planFile(zoneText, name, { limits, skipUnsupported })
  let step = steps.next()
  for (; !step.done; step = steps.next()) await pace()
  const file = step.value
  // An empty zone needs no snapshot. If it changes concurrently, its serial differs under the lock.
  const empty: ZoneSnapshot | null = opened.records === 0 ? { zone: opened, records: [] } : null
  const readSnapshot = () => readZoneSnapshot(connection, actor, path, pace)
  if (dryRun) {
    const snapshot = await readSnapshot()
    requireVersion(replacement, snapshot.zone, snapshot.records.length > 0)
    const changes = planChanges(snapshot, file)
    return viewImport(name, { changes, file, dryRun, serial: snapshot.zone.serial })
  }
  const planLocked = async (zone: Zone) => {
    const records = await readWholeZone(connection, zone, pace)
    requireVersion(replacement, zone, records.length > 0)
    return planChanges({ zone, records }, file)
  }
  for (let attempt = 1; ; attempt++) {
    // Read and compare before locking the zone, so others hardly wait.
    const snapshot = attempt > maxAttempts ? null : attempt === 1 && empty ? empty : await readSnapshot()
    if (snapshot) requireVersion(replacement, snapshot.zone, snapshot.records.length > 0)
    const planned = snapshot && planChanges(snapshot, file)
    const done = await transactionOn(connection, async () => {
      const zone = await openZone(connection, actor, path, true)
      if (replacement.follows) await requireCurrentPrimary(connection, zone, replacement.follows)
      if (snapshot && (snapshot.zone.id !== zone.id || snapshot.zone.serial !== zone.serial)) return null
      const changes = planned ?? (await planLocked(zone))
      return { changes, serial: await writeDifference(connection, { actor, zone, changes, file }, pace) }
    })
    if (done) return viewImport(name, { ...done, file, dryRun })
  }
}

/** Throws if another check of the primary was faster, or the zone follows another primary now. */
async function requireCurrentPrimary(connection: Db, { id }: Zone, followed: NonNullable<Replacement['follows']>) {
  const allowed = await allowFollowing(connection, { zoneId: id, ...followed })
  if (allowed.length === 0) throw new Fault('precondition_failed')
}

/** Replacing records requires naming their version, so concurrent changes are not lost. */
function requireVersion({ ifMatch, dryRun, options }: Replacement, zone: Zone, hasRecords: boolean): void {
  const etag = zoneEtag(zone, options)
  if (ifMatch !== undefined && !namesEtag(ifMatch, etag)) throw new Fault('precondition_failed')
  if (ifMatch !== undefined || dryRun || !hasRecords) return
  const detail = `${zone.name} has records. Send If-Match: ${etag} to replace this version, or If-Match: * to replace any.`
  throw new Fault('precondition_required', detail, { etag })
}

function planChanges({ zone, records }: ZoneSnapshot, file: PlannedFile): Difference {
  // A file for another domain has only skipped lines, and would empty the zone.
  if (file.drafts.length === 0 && records.length > 0) {
    const detail = `The file has no record for ${zone.name}, so importing it would delete all ${records.length} records.`
    throw invalidField('#', 'no_records', detail)
  }
  return diffZone(records, file.drafts)
}

type WriteRequest = { actor: Actor; zone: Zone; changes: Difference; file: PlannedFile }

/** Writes the changes under the zone's lock, and returns its new serial. */
async function writeDifference(
  connection: Db,
  { actor, zone, changes, file }: WriteRequest,
  pace: Pace,
): Promise<number> {
  const { deleted, updated, created } = changes
  const count = deleted.length + updated.length + created.length
  if (count === 0) return zone.serial
  const zoneId = zone.id
  const inBatches = async <T>(items: T[], write: (part: T[]) => Promise<unknown>) => {
    for (let at = 0; at < items.length; at += batchSize) {
      await write(items.slice(at, at + batchSize))
      await pace('locked')
    }
  }
  // Delete first, because new records may conflict with deleted ones.
  await inBatches(deleted, (part) => deleteRecordRows(connection, { zoneId, ids: part.map(({ id }) => id) }))
  await inBatches(updated, (part) => updateRecordRows(connection, { zoneId, records: part.map(({ after }) => after) }))
  await inBatches(created, (part) => insertRecordRows(connection, { zoneId, records: part }).catch(refuse))
  // The zone is locked, so nobody else increments its serial.
  const serial = zone.serial + 1
  const data = { domain: zone.name, ...countsOf(changes), skipped: file.counts.skipped, serial }
  // One event for all records: one each would cause as many deliveries to every webhook.
  const event = eventOf(actor, 'dns.zone.imported', { subject: zone.name, projectId: zone.projectId, data })
  await growSerialWithEvents(connection, { zoneId, events: numbered([event]) })
  await pace('locked')
  return serial
}

function countsOf({ deleted, updated, created, unchanged }: Difference) {
  return { created: created.length, updated: updated.length, deleted: deleted.length, unchanged }
}

/** Translates trigger errors here, because the thread can't send database errors. */
function refuse(error: unknown): never {
  const quota = refusedQuota(error)
  throw setRefusal(error) ?? (quota ? quotaFault(quota) : error)
}
