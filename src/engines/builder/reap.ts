// The reap job: what deleted deployments served, and what a deleted project cached, goes off the disk.
import type { Artifacts } from '../../artifacts.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Caches } from './cache.ts'

// Removing files fails when the disk does; an hour later somebody will have looked.
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
      // The job stays in the queue as failed, with its error; nobody waits for it.
    },
  }
}
