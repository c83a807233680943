// Creates records, in one statement or, if records at other names matter, under the lock of the zone.
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import { invalidFields } from '../../../platform/fields.ts'
import { newId } from '../../../platform/ids.ts'
import type { Actor } from '../../identity/index.ts'
import { createRecord, type DnsRecordView, findZoneToChange, viewRecord, zoneInPath } from './dns-records.ts'
import { conflictOf } from './placement.ts'
import { writeChanges } from './record-changes.ts'
import { placementError, type RecordDraft, type RecordInput, readDraft, recordConflict } from './record-rules.ts'

/** Whether records at other names, or other values, can conflict with the record. */
function hasNeighbours({ type, value }: RecordDraft): boolean {
  return ['CNAME', 'DNAME', 'DS', 'MX'].includes(type) || (type === 'TXT' && /^"v=spf1/i.test(value))
}

export async function addRecord(db: Db, actor: Actor, path: string, input: RecordInput): Promise<DnsRecordView> {
  const draft = readDraft(zoneInPath(path), input)
  if (Array.isArray(draft) || !hasNeighbours(draft)) return createRecord(db, actor, path, input)
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path)
    const now = new Date()
    const row = { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
    const found = await conflictOf(db, zone, { placed: [row], leaving: [] })
    const place = found && placementError(found)
    if (place) throw invalidFields([place])
    if (found) throw recordConflict(found)
    await writeChanges(db, actor, zone, { deleted: [], updated: [], created: [row] })
    return viewRecord(zone.name, row)
  })
}
