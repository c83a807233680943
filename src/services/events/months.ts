// Monthly tables of the event log, created in advance and dropped when they are old. Inserts never depend on this: the
// first and last table are open-ended.
import type { Database } from '../../platform/database/database.ts'
import { createMonths, deleteOldEvents, dropMonths } from './month-statements.ts'

const batch = 2_000

/**
 * Creates the next months and removes events older than the last `kept` months (null: none). Drops whole tables, and
 * deletes rows where a table also has newer events, like the first one.
 */
export async function maintainEventMonths(
  db: Database,
  kept: number | null,
  signal?: AbortSignal,
  at = new Date(),
): Promise<{ made: number; dropped: number; deleted: number }> {
  const [{ made } = { made: 0 }] = await createMonths(db, { at })
  if (kept === null) return { made, dropped: 0, deleted: 0 }
  // Drop tables first, so their rows need not be deleted one by one.
  const [{ dropped } = { dropped: 0 }] = await dropMonths(db, { at, kept })
  let deleted = 0
  while (!signal?.aborted) {
    const gone = await deleteOldEvents(db, { at, kept, limit: batch })
    deleted += gone.length
    if (gone.length < batch) break
  }
  return { made, dropped, deleted }
}
