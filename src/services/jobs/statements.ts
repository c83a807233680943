// SQL of failed jobs: to queue one again.
import { int8, statement } from '../../platform/statement.ts'

/** A new job in place of the failed one, with all attempts before it; if one with its key waits already, that one is it. */
export const requeueJob = statement('jobs.requeue', {
  reason: 'not in Prisma',
  in: { id: int8() },
  out: { id: int8() },
  sql: (p) => `
    WITH failed AS (DELETE FROM job WHERE id = ${p.id} AND failed_at IS NOT NULL RETURNING *)
    INSERT INTO job (kind, key, payload, account_id, urgent)
    SELECT kind, key, payload, account_id, urgent FROM failed
    ON CONFLICT (kind, key) WHERE failed_at IS NULL DO UPDATE SET run_at = LEAST(job.run_at, excluded.run_at)
    RETURNING id`,
})
