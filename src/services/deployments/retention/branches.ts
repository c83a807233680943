// Deleted branches: their builds are canceled at once, and their previews deleted later, unless the branch returns.
import { inBatches } from '../../../platform/batches.ts'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import type { Urls } from '../../../platform/http/urls.ts'
import { type BranchKey, labelBranch } from '../../projects/index.ts'
import { finishDeployment, terminalStates } from '../states.ts'
import { lockBuildsOfBranch } from './branch-statements.ts'
import { removeIf } from './retention.ts'

/** The number of canceled builds, and of deployments to delete. */
export type ClosedBranch = { canceled: number; previews: number }

// Current and former production deployments, including promoted previews, are never deleted with their branch.
const previewsOf = ({ projectId, ref }: BranchKey) => ({
  projectId,
  ref,
  production: false,
  source: { not: 'upload' },
  state: { in: terminalStates },
})

/**
 * Cancels the builds of a deleted branch and marks its previews for deletion. Nothing of the production branch is
 * deleted.
 */
export async function closeBranch(db: Db, urls: Urls, { projectId, ref }: BranchKey): Promise<ClosedBranch> {
  const key = { projectId, ref }
  return inTransaction(db, async (db) => {
    let canceled = 0
    // Skips builds locked by another transaction, which is ending them.
    for (const { id } of await lockBuildsOfBranch(db, key)) {
      if (await finishDeployment(db, urls, id, { to: 'CANCELED', by: 'system' })) canceled++
    }
    const project = await db.project.findUnique({ where: { id: projectId }, select: { productionBranch: true } })
    const previews = project?.productionBranch === ref ? 0 : await db.deployment.count({ where: previewsOf(key) })
    if (previews > 0) {
      // Branches deployed before this table existed have no row yet.
      await labelBranch(db, urls, key)
      await db.branch.updateMany({ where: { ...key, closedAt: null }, data: { closedAt: new Date() } })
    }
    return { canceled, previews }
  })
}

/** Keeps the previews of a branch that exists again. Deploying it does the same. */
export async function reopenBranch(db: Db, { projectId, ref }: BranchKey): Promise<void> {
  await db.branch.updateMany({ where: { projectId, ref, closedAt: { not: null } }, data: { closedAt: null } })
}

const branchesAtOnce = 1_000
const previewsAtOnce = 1_000

/**
 * Deletes the previews of branches closed before that time, with the same events as a deletion by the owner. Returns
 * their number; throws at the end if some could not be deleted.
 */
export async function removeClosedBranches(db: Db, urls: Urls, before: Date, signal?: AbortSignal): Promise<number> {
  const closed = await db.branch.findMany({
    where: { closedAt: { lt: before } },
    select: { projectId: true, ref: true },
    orderBy: { closedAt: 'asc' },
    take: branchesAtOnce,
  })
  const errors: unknown[] = []
  let removed = 0
  for (const key of closed) {
    const found = await db.deployment.findMany({
      where: previewsOf(key),
      select: { id: true, accountId: true },
      take: previewsAtOnce,
    })
    const hasMore = found.length === previewsAtOnce
    const failed = errors.length
    removed += await inBatches(signal, async () => {
      const next = found.shift()
      if (!next) return { count: 0, more: false }
      const isDue = (db: Db) => isClosed(db, key, before)
      const isGone = await removeIf(db, urls, next, isDue).catch((error) => void errors.push(error))
      return { count: isGone ? 1 : 0, more: true }
    })
    if (hasMore || errors.length > failed) continue
    await db.branch.updateMany({ where: { ...key, closedAt: { lt: before } }, data: { closedAt: null } })
  }
  if (errors.length > 0) throw new AggregateError(errors.slice(0, 5), 'some previews could not be deleted')
  return removed
}

/** Whether the branch is still closed, and not the production branch by now. */
async function isClosed(db: Db, { projectId, ref }: BranchKey, before: Date): Promise<boolean> {
  const where = { projectId, ref, closedAt: { lt: before }, project: { productionBranch: { not: ref } } }
  return (await db.branch.count({ where })) > 0
}
