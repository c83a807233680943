// Crons in SQL.
import { queueJobs } from '../../jobs/statements.ts'
import { boolean, int4, int8, optional, statement, text, timestamptz } from '../../platform/database/statement.ts'

/** Locks a cron until the transaction ends, and tells by the clock of the database whether it is due. */
export const lockCron = statement('crons.lock', {
  reason: 'row lock',
  in: { id: text() },
  out: {
    projectId: text(),
    path: text(),
    schedule: text(),
    nextAt: timestamptz(),
    due: boolean(),
    now: timestamptz(),
  },
  sql: (p) => `
    SELECT project_id AS "projectId", path, schedule, next_at AS "nextAt", next_at <= now() AS due, now() AS now
    FROM cron WHERE id = ${p.id} FOR UPDATE`,
})

/** Whom a cron calls: the host of production, and what stands in the way. */
export const readCronTarget = statement('crons.target', {
  reason: 'join in one statement',
  in: { projectId: text() },
  out: { label: text(), deploymentId: optional(text()), suspended: boolean() },
  sql: (p) => `
    SELECT p.label, p.current_deployment_id AS "deploymentId", a.suspended_at IS NOT NULL AS suspended
    FROM project p JOIN account a ON a.id = p.account_id WHERE p.id = ${p.projectId}`,
})

/** Queues crons that are overdue and have no job, because it was given up. */
export const queueForgottenCrons = statement('crons.queueForgotten', {
  reason: 'INSERT … SELECT',
  in: { before: timestamptz() },
  out: { id: int8() },
  sql: (p) => `
    ${queueJobs(`SELECT 'cron', c.id, jsonb_build_object('cronId', c.id), c.next_at FROM cron c
      WHERE c.next_at < ${p.before}
        AND NOT EXISTS (SELECT 1 FROM job j WHERE j.kind = 'cron' AND j.key = c.id AND j.failed_at IS NULL)`)}
    RETURNING id`,
})

/** Deletes runs beyond the newest of each cron, so many at most, and tells how many. */
export const deleteSurplusRuns = statement('crons.forgetRuns', {
  reason: 'lateral join',
  in: { keep: int4(), limit: int4() },
  out: { count: int4() },
  sql: (p) => `
    WITH surplus AS (
      SELECT r.id FROM cron c CROSS JOIN LATERAL (
        SELECT id FROM cron_run WHERE cron_id = c.id ORDER BY id DESC OFFSET ${p.keep}) r
      LIMIT ${p.limit}),
    gone AS (DELETE FROM cron_run WHERE id IN (SELECT id FROM surplus) RETURNING id)
    SELECT count(*)::integer AS count FROM gone`,
})
