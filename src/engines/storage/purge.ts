// The purge job: deletes what a deleted zone left behind.
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import { purgeZone } from '../../services/dns/index.ts'

// Nobody waits for this job, and only database errors make it fail.
const retryDelaysMs = [1_000, 10_000, 60_000, 600_000, 3_600_000]

export function createPurgeHandler(db: Database): Handler<'purge'> {
  return {
    concurrency: 1,
    retryDelaysMs,
    async run({ ownerId }, { signal }) {
      await purgeZone(db, ownerId, signal)
    },
    async giveUp() {},
  }
}
