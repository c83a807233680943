// The months of the event log: each has a table, made ahead of time and dropped when it is too old. An insert needs none
// of this: the first and the last table have no bound on their outer side.
import type { Database } from '../../platform/database/database.ts'
import { deleteOldEvents, dropMonths, makeMonths } from './month-statements.ts'

const batch = 2_000

/**
 * Makes the next months, and removes events from before the `kept` last ones: by dropping whole tables, and row by row
 * where a table also has newer ones, as that of all events from before there were months. Null keeps all of them.
 */
export async function keepEventMonths(
  db: Database,
  kept: number | null,
  signal?: AbortSignal,
  at = new Date(),
): Promise<{ made: number; dropped: number; deleted: number }> {
  const [{ made } = { made: 0 }] = await makeMonths(db, { at })
  if (kept === null) return { made, dropped: 0, deleted: 0 }
  // First: what can be dropped is not deleted row by row.
  const [{ dropped } = { dropped: 0 }] = await dropMonths(db, { at, kept })
  let deleted = 0
  while (!signal?.aborted) {
    const gone = await deleteOldEvents(db, { at, kept, limit: batch })
    deleted += gone.length
    if (gone.length < batch) break
  }
  return { made, dropped, deleted }
}
