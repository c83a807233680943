// Creates, reads, cancels and deletes deployments. Only states.ts changes their states.
import type { Static } from '@sinclair/typebox'
import type { Deployment, Project } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { initialOf } from '../../platform/database/columns.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { newId, timeOf } from '../../platform/ids.ts'
import { Deployment as DeploymentSchema } from '../../schemas/deployments.ts'
import { append, eventOf, eventValues } from '../events/index.ts'
import { type Actor, actorName } from '../identity/index.ts'
import {
  claimBranch,
  deploymentLabel,
  findBranchLabel,
  type NamedBranch,
  storeDefaultBranch,
} from '../projects/index.ts'
import { endMootTakedowns } from '../takedowns/index.ts'
import { queuePositions } from './queue.ts'
import { missingOf } from './sources.ts'
import { createDeploymentRow, lockDeployment, readDeployment } from './statements.ts'

export type DeploymentView = Static<typeof DeploymentSchema>

/** A deployment with the name of its project, and whether it serves production. */
export type DeploymentRow = Omit<Deployment, 'storedBytes' | 'productionUntil' | 'startCommand'> & {
  project: string
  current: boolean
  pinned: string | null
  storedBytes: bigint | string
}

const viewRow = viewOf(DeploymentSchema)

/** `queuePosition` is for readers of a deployment that waits; answers to changes, and events, leave it out. */
export function viewDeployment(urls: Urls, row: DeploymentRow, queuePosition: number | null = null): DeploymentView {
  return viewRow(row, {
    commit: row.commit.slice(0, 7),
    url: urls.deployment(row.label),
    error: row.errorCode
      ? {
          code: row.errorCode,
          message: row.errorMessage ?? '',
          excerpt: row.errorExcerpt,
          logLine: row.errorLogLine,
        }
      : null,
    queuePosition,
    branchUrl: row.branchLabel === null ? null : urls.deployment(row.branchLabel),
    commitSha: row.commit || null,
    // Those from before bytes were counted have none.
    bytes: row.state === 'READY' ? Number(row.storedBytes) || null : null,
    steps: (row.steps as DeploymentView['steps'] | null) ?? [],
    warnings: (row.warnings as DeploymentView['warnings'] | null) ?? [],
  })
}

/** Whether its build has not started, so it has a place in the queue. */
export const waits = (row: Pick<Deployment, 'state' | 'startedAt'>) =>
  row.state === 'BUILDING' && row.startedAt === null

/** Views a deployment with its place in the queue. */
async function readView(db: Db, urls: Urls, row: DeploymentRow): Promise<DeploymentView> {
  const positions = waits(row) ? await queuePositions(db, [row.id]) : null
  const uploads = await missingOf(db, row)
  return { ...viewDeployment(urls, row, positions?.get(row.id)), ...(uploads && { uploads }) }
}

export async function findDeployment(db: Db, { accountId, projectIds }: Actor, id: string): Promise<DeploymentRow> {
  const [row] = await readDeployment(db, { accountId, projectIds, id })
  if (!row) throw new Fault('not_found', `There is no deployment ${id}.`)
  return row
}

/** Finds a deployment and locks it and its project until the transaction ends; null if it does not exist. */
export async function lockToChange(
  db: Db,
  { accountId, projectIds }: Actor,
  id: string,
): Promise<DeploymentRow | null> {
  await lockDeployment(db, { accountId, projectIds, id })
  const [row] = await readDeployment(db, { accountId, projectIds, id })
  return row ?? null
}

export async function findDeploymentToChange(db: Db, actor: Actor, id: string): Promise<DeploymentRow> {
  const row = await lockToChange(db, actor, id)
  if (!row) throw new Fault('not_found', `There is no deployment ${id}.`)
  return row
}

export async function getDeployment(db: Db, urls: Urls, actor: Actor, id: string): Promise<DeploymentView> {
  return readView(db, urls, await findDeployment(db, actor, id))
}

export const withProject = { project: { select: { name: true, currentDeploymentId: true, pinnedDeploymentId: true } } }

/** Converts a row that Prisma read with `withProject`. */
export function rowOf(
  found: Deployment & { project: Pick<Project, 'name' | 'currentDeploymentId' | 'pinnedDeploymentId'> },
): DeploymentRow {
  const { project, ...deployment } = found
  const { name, currentDeploymentId, pinnedDeploymentId: pinned } = project
  return { ...deployment, project: name, current: currentDeploymentId === deployment.id, pinned }
}

export type DeploymentPlan = {
  project: Pick<Project, 'id' | 'name' | 'pinnedDeploymentId'>
  ref: string
  /** Whether the ref is a branch; undefined if the repository did not answer. */
  isBranch?: boolean
  commit: string
  production: boolean
  region: string
  source: DeploymentView['source']
  /** Whether the build is queued later, once its files have arrived. Default: false. */
  waits?: boolean
  /** Whether it comes from a fork, so its build and server get no variables. Default: false. */
  untrusted?: boolean
  /** Problems known before the build. */
  warnings?: DeploymentView['warnings']
  /** The repository's default branch if it has changed; stored only if the deployment is created. */
  named?: NamedBranch | null
}

export async function createDeployment(
  db: Db,
  urls: Urls,
  actor: Actor,
  plan: DeploymentPlan,
): Promise<DeploymentView> {
  const key = { projectId: plan.project.id, ref: plan.ref }
  const hasNone = plan.source === 'upload' || plan.isBranch === false
  const branchLabel = hasNone ? null : await findBranchLabel(db, key)
  if (branchLabel !== null || !isBranchRef(plan)) return insertDeployment(db, urls, actor, { ...plan, branchLabel })
  return inTransaction(db, async (db) => {
    const branchLabel = await claimBranch(db, urls, key)
    return insertDeployment(db, urls, actor, { ...plan, branchLabel })
  })
}

const commitHash = /^[0-9a-f]{7,40}$/

/** Without an answer from the repository, a ref counts as a branch unless it looks like a commit hash. */
function isBranchRef({ ref, source, isBranch = source === 'push' || !commitHash.test(ref) }: DeploymentPlan): boolean {
  return isBranch && source !== 'upload' && ref !== 'HEAD'
}

const initialDeployment = initialOf('Deployment')

async function insertDeployment(
  db: Db,
  urls: Urls,
  actor: Actor,
  plan: DeploymentPlan & Pick<Deployment, 'branchLabel'>,
): Promise<DeploymentView> {
  const { project, waits = false, warnings = [], untrusted = false, named = null, ...planned } = plan
  const id = newId('dpl')
  const row: DeploymentRow = {
    ...initialDeployment,
    ...planned,
    id,
    accountId: actor.accountId,
    projectId: project.id,
    project: project.name,
    state: 'BUILDING',
    label: deploymentLabel(urls, project.name),
    createdAt: timeOf(id),
    current: false,
    pinned: project.pinnedDeploymentId,
    storedBytes: '0',
    warnings: warnings.length > 0 ? warnings : null,
    untrusted,
  }
  const view = viewDeployment(urls, row)
  const made = await createDeploymentRow(db, {
    ...row,
    queued: !waits,
    ...eventValues(eventOf(actor, 'deployment.created', { subject: row.id, projectId: row.projectId, data: view })),
  })
  if (made.length === 0) {
    // The account was suspended after the check of its token or of the push's signature.
    const found = await db.project.count({ where: { id: row.projectId } })
    if (found > 0) throw new Fault('account_suspended')
    throw new Fault('not_found', `There is no project ${row.project}.`)
  }
  if (named) await storeDefaultBranch(db, project.id, named)
  return view
}

export async function deleteDeployment(
  db: Db,
  urls: Urls,
  actor: Actor,
  { id, precondition }: { id: string; precondition(view: DeploymentView): void },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findDeploymentToChange(db, actor, id)
    precondition(await readView(db, urls, row))
    if (row.current) throw new Fault('deployment_in_production')
    if (row.state === 'BUILDING') throw new Fault('deployment_building')
    await removeDeployment(db, urls, actor, row)
  })
}

/** Deletes a deployment with everything that depends on it; the transaction of `db` must have locked it. */
export async function removeDeployment(db: Db, urls: Urls, actor: Actor, row: DeploymentRow): Promise<void> {
  const { id, projectId, label } = row
  await db.deployment.delete({ where: { id } })
  await endMootTakedowns(db, urls, { projectId, labels: [label], by: actorName(actor) })
  await enqueue(db, { kind: 'reap', key: id, payload: { deploymentIds: [id] } })
  const data = viewDeployment(urls, row)
  await append(db, [eventOf(actor, 'deployment.deleted', { subject: id, projectId, data })])
}
