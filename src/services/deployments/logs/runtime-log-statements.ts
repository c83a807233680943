// Lines of servers in SQL: read, and forgotten by age and by number.
import { int4, optional, statement, text, timestamptz } from '../../../platform/database/statement.ts'

/** The step is part of the text, so that the index of these lines serves every plan. */
export const readRunLines = statement('runtimeLogs.read', {
  reason: 'literal for a partial index',
  in: {
    deploymentId: text(),
    seq: int4(),
    since: optional(timestamptz()),
    instance: optional(text()),
    stream: optional(text()),
    limit: int4(),
  },
  out: { seq: int4(), at: timestamptz(), instance: optional(text()), stream: text(), text: text() },
  sql: (p) => `
    SELECT seq, at, instance, stream, text FROM log_line
    WHERE deployment_id = ${p.deploymentId} AND step = 'run' AND seq > ${p.seq}
      AND (${p.since} IS NULL OR at >= ${p.since}) AND (${p.instance} IS NULL OR instance = ${p.instance})
      AND (${p.stream} IS NULL OR stream = ${p.stream})
    ORDER BY seq LIMIT ${p.limit}`,
})

export const forgetOldRunLines = statement('runtimeLogs.forgetOld', {
  reason: 'literal for a partial index',
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
  reason: 'window function',
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
