// SQL of jobs: fragments with which other statements queue jobs, and the lease of a worker on a job.

import { isFree, leaseEnd, leaseMs } from '../platform/database/lease.ts'
import { boolean, int4, int8, jsonb, optional, statement, text, timestamptz } from '../platform/database/statement.ts'
import { currentTrace } from '../platform/observe/tracing.ts'
import type { JobKind, JobKinds } from './kinds.ts'

/** Parameters of `insertJob`, for the statement that includes it. */
export const jobIn = {
  jobKind: text(),
  jobKey: optional(text()),
  jobPayload: jsonb<object>(),
  jobRunAt: optional(timestamptz()),
  jobTrace: optional(text()),
}

export type NewJob<K extends JobKind> = {
  kind: K
  /** Two waiting jobs of one kind and key become one. */
  key: string | null
  payload: JobKinds[K]
  /** Null: now. */
  runAt?: Date | null
}

export function jobValues<K extends JobKind>({ kind, key, payload, runAt = null }: NewJob<K>) {
  // A job planned for later starts its own trace: certificates are renewed for years.
  return { jobKind: kind, jobKey: key, jobPayload: payload, jobRunAt: runAt, jobTrace: runAt ? null : currentTrace() }
}

/**
 * Queues the job if `source`, the part that makes the change, returns a row. Two waiting jobs with the same key become
 * one, run at the earlier time. A running job runs once more, at the earliest time requested while it ran.
 */
export function insertJob(p: { [K in keyof typeof jobIn]: string }, source: string): string {
  const job = `SELECT ${p.jobKind}, ${p.jobKey}, ${p.jobPayload}, COALESCE(${p.jobRunAt}, now()) FROM ${source}`
  return queueJobs(job, p.jobTrace)
}

/** Queues a job for every row of a query with the columns kind, key, payload and run_at; `trace` is a parameter. */
export function queueJobs(query: string, trace = 'NULL'): string {
  return `INSERT INTO job (kind, key, payload, run_at, trace) SELECT q.*, ${trace} FROM (${query}) q
    ON CONFLICT (kind, key) WHERE failed_at IS NULL
    DO UPDATE SET trace = excluded.trace, run_at = CASE WHEN job.locked_by IS NOT NULL AND job.run_at = job.taken_run_at THEN excluded.run_at
      ELSE LEAST(job.run_at, excluded.run_at) END`
}

export const queueJob = statement('jobs.queue', {
  reason: 'ON CONFLICT … WHERE',
  in: jobIn,
  out: { id: int8() },
  sql: (p) => `${insertJob(p, '(SELECT 1) AS one')} RETURNING id`,
})

/** Several at once. Of those with the same kind and key, the earliest wins. */
export const queueJobList = statement('jobs.queue-list', {
  reason: 'list as one parameter',
  in: { jobs: jsonb<readonly object[]>(), trace: optional(text()) },
  out: { id: int8() },
  sql: (p) =>
    `${queueJobs(
      `SELECT DISTINCT ON (j.kind, j.key) j.kind, j.key, j.payload, COALESCE(j."runAt", now()) AS run_at
    FROM jsonb_to_recordset(${p.jobs}) AS j(kind text, key text, payload jsonb, "runAt" timestamptz) ORDER BY 1, 2, 4`,
      `CASE WHEN q.run_at > now() THEN NULL ELSE ${p.trace} END`,
    )} RETURNING id`,
})

/**
 * Queues the build of each row of `source`, which has the columns id, account_id and production of a deployment.
 * Accounts take turns at such jobs. `trace` is a parameter.
 */
export function queueBuilds(source: string, trace: string): string {
  return `INSERT INTO job (kind, key, payload, account_id, urgent, trace)
    SELECT 'build', id, jsonb_build_object('deploymentId', id), account_id, production, ${trace} FROM ${source}`
}

const leasedJob = {
  id: int8(),
  payload: jsonb<never>(),
  attempts: int4(),
  failures: int4(),
  losses: int4(),
  runAt: text(),
  trace: optional(text()),
}
const leasedColumns = 'id, payload, attempts, failures, losses, run_at::text AS "runAt", trace'

/** The account that a job belongs to, through its event, domain, deployment or cron; null for jobs of the platform. */
const ownerOf = (
  job: string,
) => `COALESCE(NULLIF(${job}.account_id, ''), (SELECT d.account_id FROM domain d WHERE d.id = ${job}.key),
  (SELECT d.account_id FROM deployment d WHERE d.id = ${job}.key),
  (SELECT p.account_id FROM cron c JOIN project p ON p.id = c.project_id WHERE c.id = ${job}.key))`

/**
 * Leases the next job to the worker, oldest first: a waiting one, or one whose worker died. Skips accounts that
 * already have `most` of the kind in progress: a job that waits for its owner's server takes as long as that server
 * likes, and a hundred of them would hold up everybody else.
 */
export const takeJob = statement('jobs.take', {
  reason: 'lease',
  in: { worker: text(), kind: text(), most: int4() },
  out: leasedJob,
  sql: (p) => `
    WITH busy AS MATERIALIZED (
      SELECT ${ownerOf('r')} AS account_id FROM job r
      WHERE r.kind = ${p.kind} AND r.failed_at IS NULL AND r.run_at <= now() AND r.locked_until > now()
      GROUP BY 1 HAVING count(*) >= ${p.most})
    UPDATE job SET locked_by = ${p.worker}, attempts = attempts + 1, taken_run_at = run_at, locked_until = ${leaseEnd()}
    WHERE id = (SELECT j.id FROM job j WHERE j.kind = ${p.kind} AND j.failed_at IS NULL AND j.run_at <= now()
                  AND ${isFree('j.locked_until')}
                  AND NOT EXISTS (SELECT 1 FROM busy WHERE busy.account_id = ${ownerOf('j')})
                ORDER BY j.run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING ${leasedColumns}`,
})

/**
 * The same for builds: accounts take turns. This is a database function, because the queue must be read after waiting
 * for a lock. `slots`: how many builds this worker runs at once.
 */
export const takeBuild = statement('jobs.takeBuild', {
  reason: 'lease',
  in: { worker: text(), slots: int4() },
  out: leasedJob,
  sql: (p) => `
    SELECT ${leasedColumns} FROM take_build(${p.worker}, ${leaseMs}, ${p.slots})`,
})

/**
 * A leased build gives up its slot, or takes one again. An account may have as many such builds as concurrent builds,
 * because each starts a server. Two concurrent requests may both succeed.
 */
export const standAside = statement('jobs.standAside', {
  reason: 'lease',
  in: { worker: text(), id: int8(), aside: boolean() },
  out: { id: int8() },
  sql: (p) => `
    UPDATE job j SET aside = ${p.aside} WHERE id = ${p.id} AND locked_by = ${p.worker} AND (NOT ${p.aside} OR COALESCE((
      SELECT count(*) FROM job o WHERE o.kind = 'build' AND o.failed_at IS NULL AND o.account_id = j.account_id
        AND o.aside AND o.locked_until > clock_timestamp()) < account_limit(j.account_id, 'buildsAtOnce'), true))
    RETURNING id`,
})

export const renewJob = statement('jobs.renew', {
  reason: 'lease',
  in: { worker: text(), id: int8() },
  out: { id: int8() },
  sql: (p) => `UPDATE job SET locked_until = ${leaseEnd()} WHERE id = ${p.id} AND locked_by = ${p.worker} RETURNING id`,
})

/** Finds the job if the worker still has it, and locks it until the transaction ends. */
export const holdJob = statement('jobs.hold', {
  reason: 'lease',
  in: { worker: text(), id: int8() },
  out: { id: int8() },
  sql: (p) => `SELECT id FROM job WHERE id = ${p.id} AND locked_by = ${p.worker} FOR SHARE`,
})

/** Deletes the job unless it was queued again meanwhile, which changes its `run_at`. */
export const deleteDoneJob = statement('jobs.done', {
  reason: 'lease',
  in: { worker: text(), id: int8(), runAt: text() },
  out: { id: int8() },
  sql: (p) => `
    DELETE FROM job WHERE id = ${p.id} AND locked_by = ${p.worker} AND run_at = ${p.runAt}::timestamptz RETURNING id`,
})

/** Returns the job to the queue for another run, with its attempts reset. */
export const repeatJob = statement('jobs.repeat', {
  reason: 'lease',
  in: { worker: text(), id: int8() },
  out: { id: int8() },
  sql: (p) => `
    UPDATE job SET locked_by = NULL, locked_until = NULL, attempts = 0, failures = 0, losses = 0
    WHERE id = ${p.id} AND locked_by = ${p.worker} RETURNING id`,
})

/** A worker that stops cleanly returns its jobs at once, without counting the attempt. */
export const releaseJob = statement('jobs.release', {
  reason: 'lease',
  in: { worker: text(), id: int8() },
  out: { id: int8() },
  sql: (p) => `
    UPDATE job SET locked_by = NULL, locked_until = NULL, attempts = attempts - 1, run_at = now()
    WHERE id = ${p.id} AND locked_by = ${p.worker} RETURNING id`,
})

/** Returns the job to the queue for later, with another payload, without counting the attempt. */
export const postponeJob = statement('jobs.postpone', {
  reason: 'lease',
  in: { worker: text(), id: int8(), payload: jsonb<object>(), delayMs: int4() },
  out: { id: int8() },
  sql: (p) => `
    UPDATE job SET locked_by = NULL, locked_until = NULL, attempts = attempts - 1, payload = ${p.payload},
      run_at = now() + ${p.delayMs} * interval '1 millisecond'
    WHERE id = ${p.id} AND locked_by = ${p.worker} RETURNING id`,
})

export const failJob = statement('jobs.fail', {
  reason: 'lease',
  in: { worker: text(), id: int8(), error: text(), givenUp: boolean(), delayMs: int4() },
  out: { id: int8() },
  sql: (p) => `
    UPDATE job SET locked_by = NULL, locked_until = NULL, failures = failures + 1, last_error = ${p.error},
      failed_at = CASE WHEN ${p.givenUp} THEN now() END, run_at = now() + ${p.delayMs} * interval '1 millisecond'
    WHERE id = ${p.id} AND locked_by = ${p.worker} RETURNING id`,
})

/** Returns a lost job to the queue for later; `uncounted` is 1 if it was lost before it was leasedJob. */
export const putBackLostJob = statement('jobs.putBackLost', {
  reason: 'lease',
  in: { worker: text(), id: int8(), uncounted: int4(), delayMs: int4() },
  out: { id: int8() },
  sql: (p) => `
    UPDATE job SET locked_by = NULL, locked_until = NULL, attempts = attempts - ${p.uncounted}, losses = losses + 1,
      run_at = now() + ${p.delayMs} * interval '1 millisecond'
    WHERE id = ${p.id} AND locked_by = ${p.worker} RETURNING id`,
})

/** Whether other unfinished jobs of the kind have lost their workers too. */
export const findOtherLosses = statement('jobs.otherLosses', {
  reason: 'lease',
  in: { kind: text(), id: int8() },
  out: { id: int8() },
  sql: (p) => `
    SELECT id FROM job WHERE kind = ${p.kind} AND failed_at IS NULL AND losses > 0 AND id <> ${p.id} LIMIT 1`,
})

/** The database's time. */
export const readNow = statement('jobs.now', {
  reason: 'clock of the database',
  in: {},
  out: { now: timestamptz() },
  sql: () => 'SELECT now() AS now',
})
