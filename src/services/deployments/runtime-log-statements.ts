// Lines of servers in SQL: forgotten by age and by number.
import { int4, statement, timestamptz } from '../../platform/statement.ts'

export const forgetOldRunLines = statement('runtimeLogs.forgetOld', {
  reason: 'not in Prisma',
  in: { before: timestamptz(), limit: int4() },
  out: { count: int4() },
  sql: (p) => `
    WITH gone AS (
      DELETE FROM log_line WHERE (deployment_id, seq) IN (
        SELECT deployment_id, seq FROM log_line WHERE step = 'run' AND at < ${p.before} LIMIT ${p.limit})
      RETURNING 1)
    SELECT count(*)::int AS count FROM gone`,
})

/** Of each deployment the newest `most` stay. */
export const forgetSurplusRunLines = statement('runtimeLogs.forgetSurplus', {
  reason: 'not in Prisma',
  in: { most: int4(), limit: int4() },
  out: { count: int4() },
  sql: (p) => `
    WITH gone AS (
      DELETE FROM log_line WHERE (deployment_id, seq) IN (
        SELECT deployment_id, seq FROM (
          SELECT deployment_id, seq, row_number() OVER (PARTITION BY deployment_id ORDER BY seq DESC) AS place
          FROM log_line WHERE step = 'run') line
        WHERE place > ${p.most} LIMIT ${p.limit})
      RETURNING 1)
    SELECT count(*)::int AS count FROM gone`,
})
