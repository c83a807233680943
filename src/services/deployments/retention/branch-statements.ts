// Branches in SQL.
import { statement, text } from '../../../platform/database/statement.ts'

/** Locks the deployments of a branch that still build; those that are locked are left out. */
export const lockBuildsOfBranch = statement('deployments.lockBuildsOfBranch', {
  reason: 'SKIP LOCKED',
  in: { projectId: text(), ref: text() },
  out: { id: text() },
  sql: (p) => `
    SELECT id FROM deployment
    WHERE project_id = ${p.projectId} AND ref = ${p.ref} AND source <> 'upload' AND state = 'BUILDING'
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`,
})
