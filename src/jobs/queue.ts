// The job queue: rows written in the transaction of the change that needs the work. We use our own table instead of
// pg-boss, so that a job is part of the statement that makes the change. pg-boss needs a separate statement and so an
// interactive transaction (1,100/s against 4,700 measured).
import { deleteInBatches } from '../platform/batches.ts'
import type { Db } from '../platform/database/database.ts'
import { currentTrace } from '../platform/observe/tracing.ts'
import type { JobKind } from './kinds.ts'
import { jobValues, type NewJob, queueJob, queueJobList } from './statements.ts'

export type AnyJob = { [K in JobKind]: NewJob<K> & { key: string } }[JobKind]

/** Enqueues a job in a transaction of several statements; `db` is its handle. */
export async function enqueue<K extends JobKind>(db: Db, job: NewJob<K>): Promise<void> {
  await queueJob(db, jobValues(job))
}

/** The same for several jobs in one statement. Of those with the same kind and key, the earliest wins. */
export async function enqueueAll(db: Db, jobs: readonly AnyJob[]): Promise<void> {
  if (jobs.length > 0) await queueJobList(db, { jobs, trace: currentTrace() })
}

/** Deletes jobs that failed before that time, and returns how many. */
export function forgetFailedJobs(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  const where = { failedAt: { lt: before } }
  return deleteInBatches(signal, (limit) => db.job.deleteMany({ where, limit }))
}
