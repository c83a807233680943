// What is kept no longer, in SQL: log lines and deployments.
import { boolean, int4, optional, statement, text, timestamptz } from '../../../platform/database/statement.ts'

/**
 * Deployments that have log lines and were made before a time, given as an id, and whether each serves production. It
 * jumps from one to the next in the index of the lines, so those that have none any more cost nothing.
 */
export const deploymentsWithLines = statement('retention.withLines', {
  reason: 'recursive query',
  in: { after: text(), beforeId: text(), limit: int4() },
  out: { id: text(), current: boolean() },
  sql: (p) => `
    WITH RECURSIVE owner AS (
      (SELECT deployment_id AS id FROM log_line WHERE deployment_id > ${p.after} ORDER BY deployment_id LIMIT 1)
      UNION ALL
      SELECT (SELECT l.deployment_id FROM log_line l WHERE l.deployment_id > owner.id ORDER BY l.deployment_id LIMIT 1)
      FROM owner WHERE owner.id < ${p.beforeId})
    SELECT id, EXISTS (SELECT 1 FROM project p
      WHERE p.id = (SELECT d.project_id FROM deployment d WHERE d.id = owner.id)
        AND p.current_deployment_id = owner.id) AS current
    FROM owner WHERE id < ${p.beforeId} LIMIT ${p.limit}`,
})

/**
 * The next projects by id, and up to `most` deployments of each kind that are due: ended, made before a time, not
 * serving production now nor since that time, and not among the newest READY ones, of which `previews` and
 * `productions` stay. Every project comes back, at least with a row that names no deployment.
 */
export const dueDeployments = statement('retention.due', {
  reason: 'lateral join',
  in: {
    afterProject: text(),
    projects: int4(),
    previews: int4(),
    productions: int4(),
    before: timestamptz(),
    beforeId: text(),
    most: int4(),
  },
  out: { projectId: text(), accountId: text(), id: optional(text()) },
  sql: (p) => `
    SELECT p.id AS "projectId", p.account_id AS "accountId", due.id FROM (
      SELECT id, account_id, current_deployment_id FROM project WHERE id > ${p.afterProject}
      ORDER BY id LIMIT ${p.projects}) p
    LEFT JOIN LATERAL (
      SELECT d.id FROM (VALUES (false, ${p.previews}), (true, ${p.productions})) kept(production, count),
        unnest(ARRAY['READY', 'ERROR', 'CANCELED']) AS ended(state), LATERAL (
        SELECT d.id FROM deployment d
        WHERE d.project_id = p.id AND d.state = ended.state AND d.production = kept.production AND d.id < ${p.beforeId}
          AND (ended.state <> 'READY' OR d.id < COALESCE((
            SELECT k.id FROM deployment k
            WHERE k.project_id = p.id AND k.state = 'READY' AND k.production = kept.production
            ORDER BY k.id DESC OFFSET GREATEST(kept.count, 1) - 1 LIMIT 1), ''))
          AND d.created_at < ${p.before} AND d.id IS DISTINCT FROM p.current_deployment_id
          AND (d.production_until IS NULL OR d.production_until < ${p.before})
        ORDER BY d.id LIMIT ${p.most}) d) due ON true
    ORDER BY p.id`,
})
