// The reap job: removes the files of deleted deployments and the caches of deleted projects from disk.

import type { Handler } from '../../jobs/worker.ts'
import type { Artifacts } from '../../platform/artifacts.ts'
import type { Caches } from './cache.ts'

// Removing files fails only if the disk does; the last delay leaves an operator an hour.
const retryDelaysMs = [10_000, 60_000, 600_000, 3_600_000] as const

export function createReapHandler(artifacts: Artifacts, caches: Caches): Handler<'reap'> {
  return {
    concurrency: 1,
    retryDelaysMs,
    async run({ deploymentIds, projectId }) {
      for (const id of deploymentIds) await artifacts.remove(id)
      if (projectId) await caches.removeProject(projectId)
    },
    async giveUp() {
      // The job stays in the queue as failed, with its error; nothing depends on it.
    },
  }
}
