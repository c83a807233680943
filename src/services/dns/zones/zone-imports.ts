// Replaces the records of a zone by those of a zone file: all or nothing, in short statements.
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
import { type ExportOptions, type Pace, readWholeZone, readZoneAtOnce, zoneEtag } from './zones.ts'

/** How a zone is replaced: `ifMatch` names the version that is (the header), `options` is what versions depend on. */
export type Replacement = {
  dryRun: boolean
  /** Lines that are not supported are left out; otherwise one refuses the file. */
  skipUnsupported: boolean
  ifMatch: string | undefined
  options: ExportOptions
  /** The file is what this primary has, to which the zone had this version of it. */
  follows?: { address: string; serial: string | null }
}
export type ZoneImportRequest = Replacement & { actor: Actor; path: string; file: ZoneText }

// Rows in one statement: some 50 ms, after which others get the database's processor.
const rowsAtOnce = 1_000
// How often an import looks at a zone that other requests change meanwhile, before it locks it first.
const maxLooks = 3

type Seen = { zone: Zone; records: RecordRow[] }

/** Imports a file, or tells what that would change. `connection` is a handle of `onConnection`. */
export async function importRecords(
  connection: Db,
  { actor, path, file: zoneText, ...replacement }: ZoneImportRequest,
  pace: Pace,
): Promise<Static<typeof ZoneImport>> {
  const { dryRun, skipUnsupported } = replacement
  const opened = await openZone(connection, actor, path)
  const { name } = opened
  requireWholeZone(actor, opened.id)
  // Before the file is read; what is found out under the lock counts.
  requireVersion(replacement, opened, opened.records > 0)
  const limits = await recordsAllowed(connection, actor.accountId)
  const steps = planFile(zoneText, name, { limits, skipUnsupported })
  let step = steps.next()
  for (; !step.done; step = steps.next()) await pace()
  const file = step.value
  // An empty zone, such as a new one, has been seen whole. If somebody is quicker, its serial differs under the lock.
  const empty: Seen | null = opened.records === 0 ? { zone: opened, records: [] } : null
  const look = () => readZoneAtOnce(connection, actor, path, pace)
  if (dryRun) {
    const seen = await look()
    requireVersion(replacement, seen.zone, seen.records.length > 0)
    const changes = planChanges(seen, file)
    return viewImport(name, { changes, file, dryRun, serial: seen.zone.serial })
  }
  const planLocked = async (zone: Zone) => {
    const records = await readWholeZone(connection, zone, pace)
    requireVersion(replacement, zone, records.length > 0)
    return planChanges({ zone, records }, file)
  }
  for (let looks = 1; ; looks++) {
    // Read and compared before the zone is locked, so that others hardly wait.
    const seen = looks > maxLooks ? null : looks === 1 && empty ? empty : await look()
    if (seen) requireVersion(replacement, seen.zone, seen.records.length > 0)
    const planned = seen && planChanges(seen, file)
    const done = await transactionOn(connection, async () => {
      const zone = await openZone(connection, actor, path, true)
      if (replacement.follows) await requireFollowing(connection, zone, replacement.follows)
      if (seen && (seen.zone.id !== zone.id || seen.zone.serial !== zone.serial)) return null
      const changes = planned ?? (await planLocked(zone))
      return { changes, serial: await writeDifference(connection, { actor, zone, changes, file }, pace) }
    })
    if (done) return viewImport(name, { ...done, file, dryRun })
  }
}

/** Refuses a look that was overtaken: by another one, or by whoever changed what the zone follows. */
async function requireFollowing(connection: Db, { id }: Zone, followed: NonNullable<Replacement['follows']>) {
  const allowed = await allowFollowing(connection, { zoneId: id, ...followed })
  if (allowed.length === 0) throw new Fault('precondition_failed')
}

/** Whoever replaces records has to say which: those of somebody else would be lost otherwise. */
function requireVersion({ ifMatch, dryRun, options }: Replacement, zone: Zone, hasRecords: boolean): void {
  const etag = zoneEtag(zone, options)
  if (ifMatch !== undefined && !namesEtag(ifMatch, etag)) throw new Fault('precondition_failed')
  if (ifMatch !== undefined || dryRun || !hasRecords) return
  const detail = `${zone.name} has records. Send If-Match: ${etag} to replace this version, or If-Match: * to replace any.`
  throw new Fault('precondition_required', detail, { etag })
}

function planChanges({ zone, records }: Seen, file: PlannedFile): Difference {
  // A file for another domain has nothing but lines that are skipped, and would empty the zone.
  if (file.drafts.length === 0 && records.length > 0) {
    const detail = `The file has no record for ${zone.name}, so importing it would delete all ${records.length} records.`
    throw invalidField('#', 'no_records', detail)
  }
  return diffZone(records, file.drafts)
}

type ToWrite = { actor: Actor; zone: Zone; changes: Difference; file: PlannedFile }

/** Writes the changes under the zone's lock, and returns its new serial. */
async function writeDifference(connection: Db, { actor, zone, changes, file }: ToWrite, pace: Pace): Promise<number> {
  const { deleted, updated, created } = changes
  const count = deleted.length + updated.length + created.length
  if (count === 0) return zone.serial
  const zoneId = zone.id
  const inParts = async <T>(items: T[], write: (part: T[]) => Promise<unknown>) => {
    for (let at = 0; at < items.length; at += rowsAtOnce) {
      await write(items.slice(at, at + rowsAtOnce))
      await pace('locked')
    }
  }
  // Deleted first: what comes may stand where something else goes.
  await inParts(deleted, (part) => deleteRecordRows(connection, { zoneId, ids: part.map(({ id }) => id) }))
  await inParts(updated, (part) => updateRecordRows(connection, { zoneId, records: part.map(({ after }) => after) }))
  await inParts(created, (part) => insertRecordRows(connection, { zoneId, records: part }).catch(refuse))
  // It is locked, so nobody else raises it.
  const serial = zone.serial + 1
  const data = { domain: zone.name, ...countsOf(changes), skipped: file.counts.skipped, serial }
  // One for all records: an event each would be as many deliveries to every webhook.
  const event = eventOf(actor, 'dns.zone.imported', { subject: zone.name, projectId: zone.projectId, data })
  await growSerialWithEvents(connection, { zoneId, events: numbered([event]) })
  await pace('locked')
  return serial
}

function countsOf({ deleted, updated, created, unchanged }: Difference) {
  return { created: created.length, updated: updated.length, deleted: deleted.length, unchanged }
}

/** A refusal of a trigger as a fault: what the database says of it does not leave the thread. */
function refuse(error: unknown): never {
  const quota = refusedQuota(error)
  throw setRefusal(error) ?? (quota ? quotaFault(quota) : error)
}
