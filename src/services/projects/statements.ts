// Projects in SQL.
import { columnsOf, omit, selected } from '../../platform/database/columns.ts'
import { int4, optional, statement, text, textArray, type ValuesOf } from '../../platform/database/statement.ts'

/** Parameters of `isOwned`, for the statement that it is part of; an `Actor` has both. */
export const ownerIn = { accountId: text(), projectIds: optional(textArray()) }

/** The condition that a row is the actor's, by the columns with the ids of its account and its project. */
export function isOwned(p: { [K in keyof typeof ownerIn]: string }, account: string, project: string): string {
  return `${account} = ${p.accountId} AND (${p.projectIds} IS NULL OR ${project} = ANY(${p.projectIds}))`
}

/** Locks the project of the actor, by name or id, until the transaction ends. */
export const lockProject = statement('projects.lock', {
  reason: 'row lock',
  in: { ...ownerIn, key: text() },
  out: { id: text() },
  sql: (p) => `
    SELECT id FROM project WHERE ${isOwned(p, 'account_id', 'id')} AND (id = ${p.key} OR name = ${p.key}) FOR UPDATE`,
})

const listed = omit(columnsOf('Project'), [
  'accountId',
  'previewPasswordHash',
  'previewVersion',
  'currentDeploymentId',
  'newestProductionId',
  'server',
])

/** What is shown of a project. */
export type ProjectRow = ValuesOf<typeof listed>

/**
 * A page of all projects of an account, by name. Filters are left to Prisma: a parameter that may be null makes
 * PostgreSQL plan the statement at every call, which takes longer than reading the page.
 */
export const listProjectRows = statement('projects.list', {
  reason: 'hot read',
  in: { accountId: text(), after: optional(text()), limit: int4() },
  out: listed,
  sql: (p) => `
    SELECT ${selected(listed, 'project')}
    FROM project WHERE account_id = ${p.accountId} AND name > COALESCE(${p.after}, '')
    ORDER BY name LIMIT ${p.limit}`,
})

/** Takes a label for an account; no row comes back if it is held for another one, or was ever a deployment's. */
export const claimLabel = statement('projects.claimLabel', {
  reason: 'ON CONFLICT … WHERE',
  in: { label: text(), accountId: text(), projectName: text() },
  out: { name: text() },
  // Of two accounts that ask at once, the second waits for the first here. The update changes nothing.
  sql: (p) => `
    INSERT INTO label (name, account_id, project_name) VALUES (${p.label}, ${p.accountId}, ${p.projectName})
    ON CONFLICT (name) DO UPDATE SET account_id = EXCLUDED.account_id
      WHERE label.account_id = EXCLUDED.account_id AND label.project_name IS NOT NULL
    RETURNING name`,
})

/** The label of a branch; no row comes back before its first deployment. */
export const readBranchLabel = statement('projects.branchLabel', {
  reason: 'hot read',
  in: { projectId: text(), ref: text() },
  out: { label: text() },
  sql: (p) => `SELECT label FROM branch WHERE project_id = ${p.projectId} AND ref = ${p.ref}`,
})

/** Takes a label for a branch; no row comes back if it was given to anything but a branch of this name of the account. */
export const claimBranchLabel = statement('projects.claimBranchLabel', {
  reason: 'ON CONFLICT … WHERE',
  in: { label: text(), accountId: text(), ref: text() },
  out: { name: text() },
  // Of two that ask at once, the second waits for the first here. The update changes nothing.
  sql: (p) => `
    INSERT INTO label (name, account_id, ref) VALUES (${p.label}, ${p.accountId}, ${p.ref})
    ON CONFLICT (name) DO UPDATE SET account_id = EXCLUDED.account_id
      WHERE label.account_id = EXCLUDED.account_id AND label.ref = EXCLUDED.ref
    RETURNING name`,
})

/** How many labels are held for an account without a project, counted up to a bound. */
export const countIdleLabels = statement('projects.countIdleLabels', {
  reason: 'subquery',
  in: { accountId: text(), most: int4() },
  out: { idle: int4() },
  sql: (p) => `
    SELECT count(*)::integer AS idle FROM (
      SELECT 1 FROM label l WHERE l.account_id = ${p.accountId} AND l.project_name IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM project p WHERE p.label = l.name) LIMIT ${p.most}) held`,
})
