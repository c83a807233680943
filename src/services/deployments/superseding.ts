// A newer push to a branch ends the builds of earlier ones: at once where its commit is known to exist, else once it is fetched.
import { type Db, inTransaction } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { lockSuperseded, shareProjectOf } from './statements.ts'
import { finishDeployment } from './states.ts'

type Superseding = { projectId: string; ref: string; before: string | null; sources?: readonly ByHost[] }

/** Deployments that a repository host asked for. */
type ByHost = 'push' | 'pull_request'
const byHost: readonly ByHost[] = ['push', 'pull_request']

/**
 * Ends the builds of pushes to the branch and of its pull requests, or those before one; what a caller of the API asked
 * for is left alone. A build that somebody has locked is ending this very moment: to wait for it with the project locked
 * could be waiting for each other. `db` is the handle of a transaction that keeps the project.
 */
export async function supersede(db: Db, urls: Urls, superseding: Superseding): Promise<string[]> {
  const canceled: string[] = []
  for (const { id } of await lockSuperseded(db, { sources: byHost, ...superseding })) {
    if (await finishDeployment(db, urls, id, { to: 'CANCELED', by: 'system' })) canceled.push(id)
  }
  return canceled
}

type Fetched = { id: string; projectId: string; ref: string; source: string }

/** Called once the commit of a push is there: before that, the push may name one that never existed. */
export async function supersedeBy(db: Db, urls: Urls, { id, projectId, ref, source }: Fetched): Promise<void> {
  if (!byHost.some((one) => one === source)) return
  await inTransaction(db, async (db) => {
    await shareProjectOf(db, { id })
    await supersede(db, urls, { projectId, ref, before: id })
  })
}
