// The reap job: removes the files of deleted deployments and the caches of deleted projects from disk.

import { enqueue } from '../../jobs/queue.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Artifacts } from '../../platform/artifacts.ts'
import type { Db } from '../../platform/database.ts'
import { areArtifactsFree } from '../../services/backups/statements.ts'
import type { Caches } from './cache.ts'

// Removing files fails only if the disk does; the last delay leaves an operator an hour.
const retryDelaysMs = [10_000, 60_000, 600_000, 3_600_000] as const

// A backup of the time when they were there still needs them.
const afterBackupMs = 60_000

export function createReapHandler(db: Db, artifacts: Artifacts, caches: Caches): Handler<'reap'> {
  return {
    concurrency: 1,
    retryDelaysMs,
    async run(payload) {
      const { deploymentIds, projectId } = payload
      if (!(await areArtifactsFree(db, {}))[0]!.free) {
        const runAt = new Date(Date.now() + afterBackupMs)
        return enqueue(db, { kind: 'reap', key: projectId ?? deploymentIds[0] ?? null, payload, runAt })
      }
      for (const id of deploymentIds) await artifacts.remove(id)
      if (projectId) await caches.removeProject(projectId)
    },
    async giveUp() {
      // The job stays in the queue as failed, with its error; nothing depends on it.
    },
  }
}
