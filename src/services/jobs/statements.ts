// SQL of failed jobs: to queue one again.
import { columnsOf, inserted, selves } from '../../platform/database/columns.ts'
import { int4, int8, statement, text } from '../../platform/database/statement.ts'

/** A new job in place of the failed one, with all attempts before it; if one with its key waits already, that one is it. */
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

const source = columnsOf('DeploymentSource')
const file = columnsOf('SourceFile')

/** The files that one deployment was uploaded with, for another one. */
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
