// Jobs that were given up: for the operator to read, to run again or to delete.
import type { Db } from '../../platform/database.ts'
import { requeueJob } from './statements.ts'

export type FailedJob = {
  id: string
  kind: string
  key: string | null
  attempts: number
  lastError: string | null
  failedAt: string
}

/** The newest last, as in a log. */
export async function listFailedJobs(db: Db): Promise<FailedJob[]> {
  const rows = await db.job.findMany({
    where: { failedAt: { not: null } },
    orderBy: [{ failedAt: 'asc' }, { id: 'asc' }],
  })
  return rows.map(({ id, kind, key, attempts, lastError, failedAt }) => ({
    id: String(id),
    kind,
    key,
    attempts,
    lastError,
    failedAt: failedAt!.toISOString(),
  }))
}

/** Whether there was such a failed job. */
export async function retryFailedJob(db: Db, id: string): Promise<boolean> {
  return (await requeueJob(db, { id })).length > 0
}

export async function discardFailedJob(db: Db, id: string): Promise<boolean> {
  const { count } = await db.job.deleteMany({ where: { id: BigInt(id), failedAt: { not: null } } })
  return count > 0
}
