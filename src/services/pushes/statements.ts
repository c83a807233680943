// SQL statements of pushes and hooks.
import { boolean, bytea, int4, optional, statement, text } from '../../platform/database/statement.ts'

/**
 * Reads the secrets that verify a push. One statement whether or not a hook exists: Prisma would run two more for
 * project and account, and the timing of a refusal would reveal which projects have a hook.
 */
export const readHookSecrets = statement('pushes.secrets', {
  reason: 'join in one statement',
  in: { projectId: text() },
  out: { accountId: text(), suspended: boolean(), secret: bytea(), oldSecret: optional(bytea()) },
  sql: (p) => `
    SELECT p.account_id AS "accountId", a.suspended_at IS NOT NULL AS suspended, h.secret,
      CASE WHEN h.old_secret_until > now() THEN h.old_secret END AS "oldSecret"
    FROM push_hook h JOIN project p ON p.id = h.project_id JOIN account a ON a.id = p.account_id
    WHERE h.project_id = ${p.projectId}`,
})

/** Prevents deletion and changes of the project until the transaction ends. Concurrent pushes share the lock. */
export const shareProject = statement('pushes.shareProject', {
  reason: 'row lock',
  in: { projectId: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM project WHERE id = ${p.projectId} FOR KEY SHARE`,
})

/** Locks the deploy hooks of a project until the transaction ends, so concurrent calls wait for each other. */
export const lockDeployHooks = statement('pushes.lockDeployHooks', {
  reason: 'row lock',
  in: { projectId: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM deploy_hook WHERE project_id = ${p.projectId} ORDER BY id FOR NO KEY UPDATE`,
})

/** Locks a pull request until the transaction ends. */
export const lockPullRequest = statement('pushes.lockPullRequest', {
  reason: 'row lock',
  in: { projectId: text(), number: int4() },
  out: { number: int4() },
  sql: (p) => `
    SELECT number FROM pull_request WHERE project_id = ${p.projectId} AND number = ${p.number} FOR UPDATE`,
})

/** Locks the hook until the transaction ends. */
export const lockHook = statement('pushes.lockHook', {
  reason: 'row lock',
  in: { projectId: text() },
  out: { projectId: text() },
  sql: (p) => `SELECT project_id AS "projectId" FROM push_hook WHERE project_id = ${p.projectId} FOR UPDATE`,
})
