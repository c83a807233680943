// The history of production in SQL.
import { int8, statement, text } from '../../platform/database/statement.ts'

// How many entries a project keeps.
const maxHistoryLength = 1_000

/** What a rollback goes to: the first deployment along the chain of entries that still exists and is not the present one. */
export const selectBefore = statement('production.before', {
  reason: 'recursive query',
  in: { projectId: text() },
  out: { deploymentId: text(), beforeId: int8() },
  sql: (p) => `
    WITH RECURSIVE chain AS (
      SELECT id, deployment_id, before_id, 1 AS step FROM production WHERE project_id = ${p.projectId} AND until IS NULL
      UNION ALL
      SELECT b.id, b.deployment_id, b.before_id, chain.step + 1 FROM chain JOIN production b ON b.id = chain.before_id
      WHERE chain.step <= ${maxHistoryLength})
    SELECT chain.deployment_id AS "deploymentId", COALESCE(chain.before_id, 0) AS "beforeId"
    FROM chain JOIN deployment d ON d.id = chain.deployment_id AND d.state = 'READY'
    WHERE chain.deployment_id <> (SELECT deployment_id FROM chain WHERE step = 1)
    ORDER BY chain.step LIMIT 1`,
})

/** Removes the oldest entries of a project. */
export const trimHistory = statement('production.trim', {
  reason: 'subquery',
  in: { projectId: text() },
  out: { id: int8() },
  sql: (p) => `
    DELETE FROM production WHERE project_id = ${p.projectId} AND id <= (
      SELECT id FROM production WHERE project_id = ${p.projectId} ORDER BY id DESC OFFSET ${maxHistoryLength} LIMIT 1)
    RETURNING id`,
})
