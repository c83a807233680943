// The job queue: rows written in the transaction of the change that needs the work.
// It is our own table and not pg-boss, so that a job is part of the statement that makes the change. pg-boss needs a
// separate statement and so an interactive transaction (1,100/s against 4,700 measured).
import { deleteInBatches } from '../platform/batches.ts'
import type { Db } from '../platform/database.ts'
import type { JobKind } from './kinds.ts'
import { jobValues, type NewJob, queueJob } from './statements.ts'

/** Enqueues a job for changes of more than one statement; `db` is the handle of their transaction. */
export async function enqueue<K extends JobKind>(db: Db, job: NewJob<K>): Promise<void> {
  await queueJob(db, jobValues(job))
}

/** Deletes jobs that were given up before that time, and tells how many. */
export function forgetFailedJobs(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  const where = { failedAt: { lt: before } }
  return deleteInBatches(signal, (limit) => db.job.deleteMany({ where, limit }))
}
