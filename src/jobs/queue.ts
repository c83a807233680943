// The job queue: rows written in the transaction of the change that needs the work.
// It is a table of ours and not pg-boss, because a job then is one more part of the statement that makes the change;
// pg-boss wants a statement of its own, which makes an interactive transaction of it (1,100/s against 4,700 measured).
import { type Db, rows, type Sql, sql } from '../db.ts'
import type { JobKind, JobKinds } from './kinds.ts'

/**
 * The insert of a job, as one more part of the statement that makes the change: written if `source` has a row.
 * A key makes two waiting jobs one, run at the earlier time; one that is running already is run once more, also at the
 * earliest of the times that were asked for while it ran.
 */
export function jobSql<K extends JobKind>(
  kind: K,
  key: string | null,
  payload: JobKinds[K],
  source: Sql,
  runAt: Date | null = null,
): Sql {
  return sql`INSERT INTO job (kind, key, payload, run_at)
    SELECT ${kind}, ${key}, ${JSON.stringify(payload)}::jsonb, COALESCE(${runAt}::timestamptz, now()) FROM ${source}
    ON CONFLICT (kind, key) WHERE failed_at IS NULL
    DO UPDATE SET run_at = CASE WHEN job.locked_by IS NOT NULL AND job.run_at = job.taken_run_at THEN excluded.run_at
      ELSE LEAST(job.run_at, excluded.run_at) END`
}

/** Enqueues a job beside changes that take more than one statement; `db` is the handle of their transaction. */
export async function enqueue<K extends JobKind>(
  db: Db,
  kind: K,
  key: string | null,
  payload: JobKinds[K],
  runAt: Date | null = null,
): Promise<void> {
  const queued = jobSql(kind, key, payload, sql`one`, runAt)
  await rows(db, sql`WITH one AS (SELECT 1), queued AS (${queued}) SELECT 1 AS done`)
}
