// Retention of deployments and their logs. For the system, so there is no owner check.
import { inBatches } from '../../../platform/batches.ts'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import type { Urls } from '../../../platform/http/urls.ts'
import { idAt } from '../../../platform/ids.ts'
import { type DeploymentRow, lockToChange, removeDeployment } from '../deployments.ts'
import { isFinished } from '../states.ts'
import { deploymentsWithLines, dueDeployments } from './retention-statements.ts'

const deploymentsAtOnce = 20
const linesAtOnce = 5_000

/** Deletes log lines from before that time, except those of production, and returns their number. */
export function deleteOldLogLines(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  // No line is older than its deployment.
  const beforeId = idAt('dpl', before)
  let after = ''
  let found: { id: string; current: boolean }[] = []
  return inBatches(signal, async () => {
    if (found.length === 0) {
      found = await deploymentsWithLines(db, { after, beforeId, limit: deploymentsAtOnce })
      return { count: 0, more: found.length > 0 }
    }
    const deploymentIds = found.filter(({ current }) => !current).map(({ id }) => id)
    const where = { deploymentId: { in: deploymentIds }, at: { lt: before } }
    const { count } = await db.logLine.deleteMany({ where, limit: linesAtOnce })
    if (count < linesAtOnce) {
      after = found.at(-1)!.id
      found = []
    }
    return { count, more: true }
  })
}

/** This many of a project's newest production deployments can always be promoted again. */
export const promotableProductions = 10

const projectsAtOnce = 50
const duePerKind = 50

export type Kept = { previews: number; before: Date }

/**
 * Deletes old deployments one by one, with the same events as a deletion by the owner: previews from before that time
 * except the project's newest, failed and canceled ones from before it, and production deployments beyond the newest
 * that have not served since. Returns their number; throws at the end if some could not be deleted.
 */
export async function removeOldDeployments(
  db: Db,
  urls: Urls,
  { previews, before }: Kept,
  signal?: AbortSignal,
): Promise<number> {
  const kept = { previews, productions: promotableProductions, before, beforeId: idAt('dpl', before), most: duePerKind }
  let afterProject = ''
  let lastProject = ''
  let due: Found[] = []
  let removed = 0
  const errors: unknown[] = []
  const total = await inBatches(signal, async () => {
    const next = due.shift()
    if (next) {
      const isGone = await removeIfDue(db, urls, next, before).catch((error) => void errors.push(error))
      const count = isGone ? 1 : 0
      removed += count
      return { count, more: true }
    }
    // After a deletion, check the same projects again, because they may have more.
    if (removed === 0) afterProject = lastProject
    removed = 0
    const found = await dueDeployments(db, { ...kept, afterProject, projects: projectsAtOnce })
    lastProject = found.at(-1)?.projectId ?? lastProject
    due = found.flatMap(({ id, accountId }) => (id === null ? [] : [{ id, accountId }]))
    return { count: 0, more: found.length > 0 }
  })
  if (errors.length > 0) throw new AggregateError(errors.slice(0, 5), 'some deployments could not be deleted')
  return total
}

type Found = { id: string; accountId: string }

/** Deletes a deployment unless it was promoted or deleted since it was found. */
function removeIfDue(db: Db, urls: Urls, found: Found, before: Date): Promise<boolean> {
  return removeIf(db, urls, found, async (db, { id }) => {
    const served = await db.deployment.count({ where: { id, productionUntil: { gte: before } } })
    return served === 0
  })
}

/** Deletes a finished deployment that doesn't serve production, if it is still due under the lock. */
export function removeIf(
  db: Db,
  urls: Urls,
  { id, accountId }: Found,
  isDue: (db: Db, row: DeploymentRow) => Promise<boolean>,
): Promise<boolean> {
  const actor = { accountId, tokenId: 'system', scopes: [], projectIds: null }
  return inTransaction(db, async (db) => {
    const row = await lockToChange(db, actor, id)
    if (!row || row.current || row.pinned === id || !isFinished(row.state)) return false
    if (!(await isDue(db, row))) return false
    await removeDeployment(db, urls, actor, row)
    return true
  })
}
