// SQL statements for retrying failed jobs.
import { int4, int8, statement, text } from '../../platform/database/statement.ts'

/** Replaces a failed job with a new one with all attempts left, or hastens the job that waits under its key. */
export const requeueJob = statement('jobs.requeue', {
  reason: 'ON CONFLICT … WHERE',
  in: { id: int8() },
  out: { id: int8() },
  sql: (p) => `
    WITH failed AS (DELETE FROM job WHERE id = ${p.id} AND failed_at IS NOT NULL RETURNING *)
    INSERT INTO job (kind, key, payload, account_id, urgent)
    SELECT kind, key, payload, account_id, urgent FROM failed
    ON CONFLICT (kind, key) WHERE failed_at IS NULL DO UPDATE SET run_at = LEAST(job.run_at, excluded.run_at)
    RETURNING id`,
})

/** Copies the uploaded files of a deployment to another one. */
export const copySource = statement('jobs.copySource', {
  reason: 'INSERT … SELECT',
  in: { from: text(), to: text() },
  out: { files: int4() },
  sql: (p) => `
    WITH source AS (
      INSERT INTO deployment_source ${inserted(source, { ...selves(source), deploymentId: p.to, newBytes: '0', expiresAt: 'NULL' })}
      FROM deployment_source WHERE deployment_id = ${p.from}),
    copied AS (
      INSERT INTO source_file ${inserted(file, { ...selves(file), deploymentId: p.to })}
      FROM source_file WHERE deployment_id = ${p.from}
      RETURNING 1)
    SELECT count(*)::int AS files FROM copied`,
})
