// Deletes the records of deleted zones, and the signatures of deleted keys.
import { inBatches } from '../../../platform/batches.ts'
import type { Db } from '../../../platform/database/database.ts'
import { purgeZoneRows } from '../sql/zone-statements.ts'

// About ten milliseconds of work for the database.
const batchSize = 1_000

/** `ownerId` is the id of the domain or key. Returns the number of deleted rows; 0 while the owner exists. */
export function purgeZone(db: Db, ownerId: string, signal?: AbortSignal): Promise<number> {
  return inBatches(signal, async () => {
    const [purged] = await purgeZoneRows(db, { ownerId, limit: batchSize })
    const { count } = purged!
    return { count, more: count === batchSize }
  })
}
