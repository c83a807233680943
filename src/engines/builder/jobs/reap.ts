// The reap job: removes the files of deleted deployments and the caches of deleted projects.

import { type Handler, Postponed } from '../../../jobs/worker.ts'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { Database } from '../../../platform/database/database.ts'
import { whileNoBackup } from '../../../services/deployments/index.ts'
import type { Caches } from '../run/cache.ts'

// Removing files only fails if the disk does. The daily sweep removes what remains.
const retryDelaysMs = [10_000, 60_000, 600_000, 3_600_000] as const
// A backup in progress may still need the files.
const backupWaitMs = 1_000
const afterBackupMs = 60_000
const batchSize = 20

export function createReapHandler(db: Database, artifacts: Artifacts, caches: Caches): Handler<'reap'> {
  return {
    concurrency: 1,
    retryDelaysMs,
    async run(payload) {
      const { deploymentIds, projectId } = payload
      // In batches, so that a backup doesn't wait for thousands of removals.
      for (let at = 0; at < deploymentIds.length; at += batchSize) {
        const removed = await whileNoBackup(db, backupWaitMs, async () => {
          for (const id of deploymentIds.slice(at, at + batchSize)) await artifacts.remove(id)
        })
        if (!removed) throw new Postponed('a backup is being taken', { payload, delayMs: afterBackupMs })
      }
      if (projectId) await caches.removeProject(projectId)
    },
    async giveUp() {
      // The job stays in the queue as failed; nothing depends on it.
    },
  }
}
