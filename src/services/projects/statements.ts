// Projects in SQL.
import { boolean, int4, optional, statement, text, textArray, timestamptz } from '../../platform/statement.ts'

/** Parameters of `isOwned`, for the statement that it is part of; an `Actor` has both. */
export const ownerIn = { accountId: text(), projectIds: optional(textArray()) }

/** The condition that a row is the actor's, by the columns with the ids of its account and its project. */
export function isOwned(p: { [K in keyof typeof ownerIn]: string }, account: string, project: string): string {
  return `${account} = ${p.accountId} AND (${p.projectIds} IS NULL OR ${project} = ANY(${p.projectIds}))`
}

/** Locks the project of the actor, by name or id, until the transaction ends. */
export const lockProject = statement('projects.lock', {
  reason: 'not in Prisma',
  in: { ...ownerIn, key: text() },
  out: { id: text() },
  sql: (p) => `
    SELECT id FROM project WHERE ${isOwned(p, 'account_id', 'id')} AND (id = ${p.key} OR name = ${p.key}) FOR UPDATE`,
})

/**
 * A page of all projects of an account, by name. Filters are left to Prisma: a parameter that may be null makes
 * PostgreSQL plan the statement at every call, which takes longer than reading the page.
 */
export const listProjectRows = statement('projects.list', {
  reason: 'hot read',
  in: { accountId: text(), after: optional(text()), limit: int4() },
  out: {
    id: text(),
    name: text(),
    framework: text(),
    repo: text(),
    region: text(),
    label: text(),
    productionBranch: text(),
    rootDirectory: optional(text()),
    installCommand: optional(text()),
    buildCommand: optional(text()),
    outputDirectory: optional(text()),
    spaFallback: boolean(),
    cleanUrls: boolean(),
    autoDeploy: boolean(),
    hsts: boolean(),
    buildNetwork: text(),
    serverNetwork: text(),
    createdAt: timestamptz(),
    updatedAt: timestamptz(),
  },
  sql: (p) => `
    SELECT id, name, framework, repo, region, label, production_branch AS "productionBranch",
      root_directory AS "rootDirectory", install_command AS "installCommand", build_command AS "buildCommand",
      output_directory AS "outputDirectory", spa_fallback AS "spaFallback", clean_urls AS "cleanUrls",
      auto_deploy AS "autoDeploy", hsts, build_network AS "buildNetwork", server_network AS "serverNetwork",
      created_at AS "createdAt", updated_at AS "updatedAt"
    FROM project WHERE account_id = ${p.accountId} AND name > COALESCE(${p.after}, '')
    ORDER BY name LIMIT ${p.limit}`,
})
