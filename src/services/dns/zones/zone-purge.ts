// Deletes the records of deleted zones, and the signatures of deleted keys.
import { inBatches } from '../../../platform/batches.ts'
import type { Db } from '../../../platform/database/database.ts'
import { purgeZoneRows } from '../sql/zone-statements.ts'

// Some ten milliseconds of the database.
const rowsAtOnce = 1_000

/** `ownerId` is the id of the domain or the key. Returns how many rows it deleted; none while the owner exists. */
export function purgeZone(db: Db, ownerId: string, signal?: AbortSignal): Promise<number> {
  return inBatches(signal, async () => {
    const [purged] = await purgeZoneRows(db, { ownerId, limit: rowsAtOnce })
    const { count } = purged!
    return { count, more: count === rowsAtOnce }
  })
}
