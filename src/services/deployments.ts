// Deployments: made, read, canceled, promoted, deleted. States change in deployment-states.ts alone.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Config, edgeUrl } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault } from '../errors.ts'
import { newId, randomLabel } from '../ids.ts'
import { enqueue, jobSql } from '../jobs/queue.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import { isRefName, type Repositories } from '../repositories.ts'
import type { CreateDeployment, DeploymentQuery, Deployment as DeploymentSchema } from '../schemas/deployments.ts'
import { statusJobSql } from './commit-statuses.ts'
import { append, eventOf, eventSql } from './events.ts'
import { findProject, hasKey, ownedBy, type ProjectRow } from './projects.ts'

export type DeploymentView = Static<typeof DeploymentSchema>

export type DeploymentRow = {
  id: string
  accountId: string
  projectId: string
  project: string
  state: DeploymentView['state']
  ref: string
  commit: string
  production: boolean
  label: string
  region: string
  source: DeploymentView['source']
  errorCode: string | null
  errorMessage: string | null
  createdAt: Date
  readyAt: Date | null
  finishedAt: Date | null
  current: boolean
}

export const deploymentColumns = sql`d.id, d.account_id AS "accountId", d.project_id AS "projectId", p.name AS project,
  d.state, d.ref, d.commit, d.production, d.label, d.region, d.source, d.error_code AS "errorCode",
  d.error_message AS "errorMessage", d.created_at AS "createdAt", d.ready_at AS "readyAt",
  d.finished_at AS "finishedAt", p.current_deployment_id IS NOT DISTINCT FROM d.id AS current`

// How long the answer to POST may wait for the repository's host.
const resolveTimeoutMs = 2_000

export function viewDeployment(config: Config, row: DeploymentRow): DeploymentView {
  return {
    id: row.id,
    project: row.project,
    state: row.state,
    ref: row.ref,
    commit: row.commit.slice(0, 7),
    production: row.production,
    url: edgeUrl(config, row.label),
    region: row.region,
    createdAt: row.createdAt.toISOString(),
    readyAt: row.readyAt?.toISOString() ?? null,
    finishedAt: row.finishedAt?.toISOString() ?? null,
    error: row.errorCode ? { code: row.errorCode, message: row.errorMessage ?? '' } : null,
    source: row.source,
    current: row.current,
  }
}

export async function findDeployment(db: Db, actor: Actor, id: string, lock = false): Promise<DeploymentRow> {
  const [row] = await rows<DeploymentRow>(
    db,
    sql`SELECT ${deploymentColumns} FROM deployment d JOIN project p ON p.id = d.project_id
        WHERE d.id = ${id} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)}
        ${lock ? sql`FOR UPDATE OF d, p` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `There is no deployment ${id}.`)
  return row
}

export async function listDeployments(
  db: Db,
  config: Config,
  actor: Actor,
  filter: Static<typeof DeploymentQuery>,
  page: PageRequest,
): Promise<PageOf<DeploymentView>> {
  const conditions = [ownedBy(actor, sql`d.account_id`, sql`d.project_id`)]
  if (filter.project) conditions.push(hasKey(filter.project))
  if (filter.state) conditions.push(sql`d.state = ${filter.state}`)
  if (filter.production !== undefined) conditions.push(sql`d.production = ${filter.production}::boolean`)
  if (filter.ref) conditions.push(sql`d.ref = ${filter.ref}`)
  const descending = page.order === 'desc'
  if (page.after) conditions.push(descending ? sql`d.id < ${page.after[0]}` : sql`d.id > ${page.after[0]}`)
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`)
  const found = await rows<DeploymentRow>(
    db,
    sql`SELECT ${deploymentColumns} FROM deployment d JOIN project p ON p.id = d.project_id WHERE ${where}
        ORDER BY d.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(
    found,
    page,
    (row) => viewDeployment(config, row),
    (row) => [row.id],
  )
}

export type DeploymentPlan = {
  project: ProjectRow
  ref: string
  commit: string
  production: boolean
  source: DeploymentView['source']
}

/** Everything that must be known before the row is written; the repository is asked here, outside any transaction. */
export async function planDeployment(
  db: Db,
  repositories: Repositories,
  actor: Actor,
  input: Static<typeof CreateDeployment>,
): Promise<DeploymentPlan> {
  const project = await findProject(db, actor, input.project)
  const ref = input.ref ?? project.productionBranch
  const resolution = isRefName(ref) ? await repositories.resolve(project.repo, ref, resolveTimeoutMs) : 'not_found'
  if (resolution === 'not_found') {
    const detail = `${project.repo} has no branch, tag or commit ${ref}.`
    throw new Fault('ref_not_found', detail, {
      errors: [{ in: 'body', pointer: '#/ref', code: 'ref_not_found', detail }],
    })
  }
  // A host that does not answer never refuses the call: the worker goes on trying.
  const commit = resolution === 'unreachable' ? '' : resolution.found
  return { project, ref, commit, production: input.production ?? false, source: 'api' }
}

export async function createDeployment(
  db: Db,
  config: Config,
  actor: Actor,
  plan: DeploymentPlan,
): Promise<DeploymentView> {
  const row: DeploymentRow = {
    id: newId('dpl'),
    accountId: actor.accountId,
    projectId: plan.project.id,
    project: plan.project.name,
    state: 'BUILDING',
    ref: plan.ref,
    commit: plan.commit,
    production: plan.production,
    label: `${plan.project.name}-${randomLabel(9)}`,
    region: config.region,
    source: plan.source,
    errorCode: null,
    errorMessage: null,
    createdAt: new Date(),
    readyAt: null,
    finishedAt: null,
    current: false,
  }
  const view = viewDeployment(config, row)
  const event = eventOf(actor, 'deployment.created', row.id, row.projectId, view)
  // The project is locked against deletion by reading it here, so a missing row means that it went meanwhile.
  const made = await rows(
    db,
    sql`WITH made AS (
          INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
          SELECT ${row.id}, ${row.accountId}, p.id, ${row.state}, ${row.ref}, ${row.commit}, ${row.production}::boolean,
            ${row.label}, ${row.region}, ${row.source}, ${row.createdAt}::timestamptz
          FROM project p WHERE p.id = ${row.projectId} FOR KEY SHARE RETURNING id, project_id),
        logged AS (${eventSql(event, sql`made`)}),
        queued AS (${jobSql('build', row.id, { deploymentId: row.id }, sql`made`)}),
        told AS (${statusJobSql(row.id, sql`made`)})
        SELECT id FROM made`,
  )
  if (made.length === 0) throw new Fault('not_found', `There is no project ${row.project}.`)
  return view
}

/** Points production at a READY deployment, older or newer, without a build. */
export async function promoteDeployment(db: Db, config: Config, actor: Actor, id: string): Promise<DeploymentView> {
  return inTransaction(db, async (db) => {
    const row = await findDeployment(db, actor, id, true)
    if (row.state !== 'READY') throw new Fault('deployment_not_ready', `The deployment is ${row.state}, not READY.`)
    if (row.current) return viewDeployment(config, row)
    await db.project.update({ where: { id: row.projectId }, data: { currentDeploymentId: row.id } })
    const data = row.production ? {} : ({ production: true, source: 'promote' } as const)
    if (!row.production) await db.deployment.update({ where: { id: row.id }, data })
    const view = viewDeployment(config, { ...row, ...data, current: true })
    await append(db, [eventOf(actor, 'deployment.promoted', row.id, row.projectId, view)])
    return view
  })
}

export async function deleteDeployment(
  db: Db,
  config: Config,
  actor: Actor,
  id: string,
  precondition: (view: DeploymentView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findDeployment(db, actor, id, true)
    const view = viewDeployment(config, row)
    precondition(view)
    if (row.current) throw new Fault('deployment_in_production')
    if (row.state === 'BUILDING') throw new Fault('deployment_building')
    await db.deployment.delete({ where: { id: row.id } })
    await enqueue(db, 'reap', row.id, { deploymentIds: [row.id] })
    await append(db, [eventOf(actor, 'deployment.deleted', row.id, row.projectId, view)])
  })
}
