// Deployments: made, read, canceled, promoted, deleted. States change in states.ts alone.
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

/** Whether its build has not begun: only then there is a place in the queue to look up. */
export const waits = (row: Pick<Deployment, 'state' | 'startedAt'>) =>
  row.state === 'BUILDING' && row.startedAt === null

/** With its place in the queue, if it waits. */
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

/** The deployment, or null; it and its project are locked until the transaction ends. */
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

/** A row that was read by Prisma with `withProject`. */
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
  /** Whether the ref is a branch; left out where the repository didn't say. */
  isBranch?: boolean
  commit: string
  production: boolean
  region: string
  source: DeploymentView['source']
  /** Its build is queued later, when its files have come. Default: false. */
  waits?: boolean
  /** Comes from a fork: its build and its server get no variable. Default: false. */
  untrusted?: boolean
  /** What is known to be wrong before it is built. */
  warnings?: DeploymentView['warnings']
  /** The default branch of the repository, if it is news: stored with the deployment, and not if that is refused. */
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
  if (branchLabel !== null || !namesBranch(plan)) return insertDeployment(db, urls, actor, { ...plan, branchLabel })
  return inTransaction(db, async (db) => {
    const branchLabel = await claimBranch(db, urls, key)
    return insertDeployment(db, urls, actor, { ...plan, branchLabel })
  })
}

const commitHash = /^[0-9a-f]{7,40}$/

/** Where the repository didn't say, what looks like a commit is none; and HEAD is another branch after a while. */
function namesBranch({ ref, source, isBranch = source === 'push' || !commitHash.test(ref) }: DeploymentPlan): boolean {
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
    // The account was suspended after its token or the signature of the push was checked.
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

/** Deletes the row with all that goes with it; `db` is the handle of the transaction that has locked it. */
export async function removeDeployment(db: Db, urls: Urls, actor: Actor, row: DeploymentRow): Promise<void> {
  const { id, projectId, label } = row
  await db.deployment.delete({ where: { id } })
  await endMootTakedowns(db, urls, { projectId, labels: [label], by: actorName(actor) })
  await enqueue(db, { kind: 'reap', key: id, payload: { deploymentIds: [id] } })
  const data = viewDeployment(urls, row)
  await append(db, [eventOf(actor, 'deployment.deleted', { subject: id, projectId, data })])
}
