// Projects: their rules, their settings, and the one production address each of them keeps for ever.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Config, edgeUrl } from '../config.ts'
import { type Db, inTransaction, rows, type Sql, sql } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import { newId, randomLabel } from '../ids.ts'
import { enqueue } from '../jobs/queue.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import { isRefName } from '../repositories.ts'
import type { ChangeProject, CreateProject, ProjectQuery, Project as ProjectSchema } from '../schemas/projects.ts'
import { append, eventOf, eventSql } from './events.ts'

export type ProjectView = Static<typeof ProjectSchema>

export type ProjectRow = {
  id: string
  accountId: string
  name: string
  framework: ProjectView['framework']
  repo: string
  region: string
  label: string
  productionBranch: string
  rootDirectory: string | null
  installCommand: string | null
  buildCommand: string | null
  outputDirectory: string | null
  spaFallback: boolean
  cleanUrls: boolean
  autoDeploy: boolean
  hsts: boolean
  buildNetwork: ProjectView['settings']['buildNetwork']
  serverNetwork: ProjectView['settings']['serverNetwork']
  currentDeploymentId: string | null
  createdAt: Date
  updatedAt: Date
}

const columns = sql`p.id, p.account_id AS "accountId", p.name, p.framework, p.repo, p.region, p.label,
  p.production_branch AS "productionBranch", p.root_directory AS "rootDirectory",
  p.install_command AS "installCommand", p.build_command AS "buildCommand",
  p.output_directory AS "outputDirectory", p.spa_fallback AS "spaFallback", p.clean_urls AS "cleanUrls",
  p.auto_deploy AS "autoDeploy", p.hsts, p.build_network AS "buildNetwork", p.server_network AS "serverNetwork",
  p.current_deployment_id AS "currentDeploymentId",
  p.created_at AS "createdAt", p.updated_at AS "updatedAt"`

// Labels that visitors take for the platform's own; a project of that name gets one with a suffix.
const reservedLabels = new Set('www api app admin dashboard docs mail ns1 ns2 status support'.split(' '))

/** The condition that a row's project belongs to the actor; `project` is the alias of the joined project. */
export function ownedBy(actor: Actor, account: Sql, project: Sql): Sql {
  if (!actor.projectIds) return sql`${account} = ${actor.accountId}`
  return sql`${account} = ${actor.accountId} AND ${project} = ANY(${[...actor.projectIds]}::text[])`
}

/** Projects are addressed by name or by id; a name holds no underscore, so the two cannot be confused. */
export function hasKey(key: string): Sql {
  return key.startsWith('prj_') ? sql`p.id = ${key}` : sql`p.name = ${key}`
}

export function viewProject(config: Config, row: ProjectRow): ProjectView {
  return {
    id: row.id,
    name: row.name,
    framework: row.framework,
    repo: row.repo,
    region: row.region,
    productionUrl: edgeUrl(config, row.label),
    settings: {
      productionBranch: row.productionBranch,
      rootDirectory: row.rootDirectory,
      installCommand: row.installCommand,
      buildCommand: row.buildCommand,
      outputDirectory: row.outputDirectory,
      spaFallback: row.spaFallback,
      cleanUrls: row.cleanUrls,
      autoDeploy: row.autoDeploy,
      hsts: row.hsts,
      buildNetwork: row.buildNetwork,
      serverNetwork: row.serverNetwork,
    },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

/** The project of the actor by name or id; with `lock`, held against other changes until the transaction ends. */
export async function findProject(db: Db, actor: Actor, key: string, lock = false): Promise<ProjectRow> {
  const [row] = await rows<ProjectRow>(
    db,
    sql`SELECT ${columns} FROM project p WHERE ${ownedBy(actor, sql`p.account_id`, sql`p.id`)} AND ${hasKey(key)}
        ${lock ? sql`FOR UPDATE` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `There is no project ${key}.`)
  return row
}

export async function listProjects(
  db: Db,
  config: Config,
  actor: Actor,
  filter: Static<typeof ProjectQuery>,
  page: PageRequest,
): Promise<PageOf<ProjectView>> {
  const conditions = [ownedBy(actor, sql`p.account_id`, sql`p.id`)]
  if (filter.framework) conditions.push(sql`p.framework = ${filter.framework}`)
  if (filter.repo) conditions.push(sql`p.repo = ${filter.repo}`)
  if (filter.search) {
    const like = `%${filter.search.replace(/[\\%_]/g, '\\$&')}%`
    conditions.push(sql`(p.name ILIKE ${like} OR p.repo ILIKE ${like})`)
  }
  const descending = page.order === 'desc'
  if (page.after) conditions.push(descending ? sql`p.name < ${page.after[0]}` : sql`p.name > ${page.after[0]}`)
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`)
  const found = await rows<ProjectRow>(
    db,
    sql`SELECT ${columns} FROM project p WHERE ${where}
        ORDER BY p.name ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(
    found,
    page,
    (row) => viewProject(config, row),
    (row) => [row.name],
  )
}

function checkBranch(branch: string | undefined): void {
  if (branch !== undefined && !isRefName(branch)) {
    throw invalidField('#/settings/productionBranch', 'bad_format', 'must be a branch name that git allows')
  }
}

export async function createProject(
  db: Db,
  config: Config,
  actor: Actor,
  input: Static<typeof CreateProject>,
): Promise<ProjectView> {
  if (actor.projectIds) throw new Fault('token_limited_to_projects')
  checkBranch(input.settings?.productionBranch)
  const now = new Date()
  const row: ProjectRow = {
    productionBranch: 'main',
    rootDirectory: null,
    installCommand: null,
    buildCommand: null,
    outputDirectory: null,
    spaFallback: false,
    cleanUrls: true,
    autoDeploy: true,
    hsts: false,
    buildNetwork: 'public',
    serverNetwork: 'public',
    ...input.settings,
    id: newId('prj'),
    accountId: actor.accountId,
    name: input.name,
    framework: input.framework ?? 'other',
    repo: input.repo,
    region: config.region,
    label: input.name,
    currentDeploymentId: null,
    createdAt: now,
    updatedAt: now,
  }
  for (let attempt = 0; attempt < 5; attempt++) {
    if (attempt > 0 || reservedLabels.has(row.label)) row.label = `${input.name}-${randomLabel(4)}`
    const view = viewProject(config, row)
    // A label is free only if no deployment is served there either. Nothing raises, so a transaction around it lives on.
    const made = await rows<{ id: string }>(
      db,
      sql`WITH made AS (
            INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, root_directory,
              install_command, build_command, output_directory, spa_fallback, clean_urls, auto_deploy, hsts,
              build_network, server_network, created_at, updated_at)
            SELECT ${row.id}, ${row.accountId}, ${row.name}, ${row.framework}, ${row.repo}, ${row.region}, ${row.label},
              ${row.productionBranch}, ${row.rootDirectory}, ${row.installCommand}, ${row.buildCommand},
              ${row.outputDirectory}, ${row.spaFallback}::boolean, ${row.cleanUrls}::boolean, ${row.autoDeploy}::boolean,
              ${row.hsts}::boolean, ${row.buildNetwork}, ${row.serverNetwork}, ${now}::timestamptz, ${now}::timestamptz
            WHERE NOT EXISTS (SELECT 1 FROM deployment d WHERE d.label = ${row.label})
            ON CONFLICT DO NOTHING RETURNING id),
          logged AS (${eventSql(eventOf(actor, 'project.created', row.id, row.id, view), sql`made`)})
          SELECT id FROM made`,
    )
    if (made.length > 0) return view
    const [same] = await rows(
      db,
      sql`SELECT 1 FROM project WHERE account_id = ${actor.accountId} AND name = ${row.name}`,
    )
    if (same) throw new Fault('project_exists', `The account already has a project ${row.name}.`)
  }
  throw new Error('no free label found for a project')
}

export async function changeProject(
  db: Db,
  config: Config,
  actor: Actor,
  key: string,
  change: Static<typeof ChangeProject>,
  precondition: (view: ProjectView) => void,
): Promise<ProjectView> {
  checkBranch(change.settings?.productionBranch)
  return inTransaction(db, async (db) => {
    const before = await findProject(db, actor, key, true)
    precondition(viewProject(config, before))
    const { settings, ...fields } = change
    const data = { ...fields, ...settings, updatedAt: new Date() }
    await db.project.update({ where: { id: before.id }, data })
    const view = viewProject(config, { ...before, ...data })
    await append(db, [eventOf(actor, 'project.updated', before.id, before.id, view)])
    return view
  })
}

/** Takes the deployments along, and refuses while domains are attached. */
export async function deleteProject(
  db: Db,
  config: Config,
  actor: Actor,
  key: string,
  precondition: (view: ProjectView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findProject(db, actor, key, true)
    const view = viewProject(config, row)
    precondition(view)
    const domains = await db.domain.findMany({ where: { projectId: row.id }, select: { name: true }, take: 3 })
    if (domains.length > 0) {
      const names = domains.map((domain) => domain.name).join(', ')
      throw new Fault('project_has_domains', `Domains are attached to ${row.name}: ${names}. Delete them first.`)
    }
    const deployments = await db.deployment.findMany({ where: { projectId: row.id }, select: { id: true } })
    await db.project.delete({ where: { id: row.id } })
    await enqueue(db, 'reap', row.id, { deploymentIds: deployments.map(({ id }) => id), projectId: row.id })
    await append(db, [eventOf(actor, 'project.deleted', row.id, row.id, view)])
  })
}
