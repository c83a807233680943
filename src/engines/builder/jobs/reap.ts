// The reap job: removes the files of deleted deployments and the caches of deleted projects from disk.

import { type Handler, Postponed } from '../../../jobs/worker.ts'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { Database } from '../../../platform/database/database.ts'
import { whileNoBackup } from '../../../services/deployments/index.ts'
import type { Caches } from '../run/cache.ts'

// Removing files fails only if the disk does. What is given up is left to the daily sweep.
const retryDelaysMs = [10_000, 60_000, 600_000, 3_600_000] as const
// A backup of the time when they were there still needs them.
const backupWaitMs = 1_000
const afterBackupMs = 60_000
const removedAtOnce = 20

export function createReapHandler(db: Database, artifacts: Artifacts, caches: Caches): Handler<'reap'> {
  return {
    concurrency: 1,
    retryDelaysMs,
    async run(payload) {
      const { deploymentIds, projectId } = payload
      // Some at a time: whoever wants to take a backup need not wait for thousands.
      for (let at = 0; at < deploymentIds.length; at += removedAtOnce) {
        const removed = await whileNoBackup(db, backupWaitMs, async () => {
          for (const id of deploymentIds.slice(at, at + removedAtOnce)) await artifacts.remove(id)
        })
        if (!removed) throw new Postponed('a backup is being taken', { payload, delayMs: afterBackupMs })
      }
      if (projectId) await caches.removeProject(projectId)
    },
    async giveUp() {
      // The job stays in the queue as failed, with its error; nothing depends on it.
    },
  }
}
