// Newer pushes end the builds of earlier ones: at once if their commit is known to exist, else once it is fetched.
import { type Db, inTransaction } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { lockSuperseded, shareProjectOf } from './statements.ts'
import { finishDeployment } from './states.ts'

type Superseding = { projectId: string; ref: string; before: string | null; sources?: readonly ByHost[] }

/** Sources of deployments that a repository host requested. */
type ByHost = 'push' | 'pull_request'
const byHost: readonly ByHost[] = ['push', 'pull_request']

/**
 * Ends the builds of pushes to the branch and of its pull requests, or those before one, but none requested through the
 * API. Skips locked builds, which are ending; waiting for them with the project locked could deadlock. `db` must be in
 * a transaction that locks the project.
 */
export async function supersede(db: Db, urls: Urls, superseding: Superseding): Promise<string[]> {
  const canceled: string[] = []
  for (const { id } of await lockSuperseded(db, { sources: byHost, ...superseding })) {
    if (await finishDeployment(db, urls, id, { to: 'CANCELED', by: 'system' })) canceled.push(id)
  }
  return canceled
}

type Fetched = { id: string; projectId: string; ref: string; source: string }

/** Called once the commit of a push is fetched, because a push could name a commit that never existed. */
export async function supersedeBy(db: Db, urls: Urls, { id, projectId, ref, source }: Fetched): Promise<void> {
  if (!byHost.some((one) => one === source)) return
  await inTransaction(db, async (db) => {
    await shareProjectOf(db, { id })
    await supersede(db, urls, { projectId, ref, before: id })
  })
}
