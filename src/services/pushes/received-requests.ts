// A pull or merge request that a repository host tells of: noted, and deployed where it comes from the same repository.
import type { Project, PullRequest } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import type { PushCheck } from '../../platform/git/repositories.ts'
import { repositoryName } from '../../platform/git/repository-address.ts'
import {
  askTimeoutMs,
  closeBranch,
  createDeployment,
  reopenBranch,
  supersede,
  unreachableWarning,
} from '../deployments/index.ts'
import type { Actor } from '../identity/index.ts'
import { openAccess } from '../projects/index.ts'
import { effectsOf } from './deleted-branches.ts'
import { type Delivery, findHooked, type PushResult, type Received, takeInTurn } from './deliveries.ts'
import { isApproved, makeRoom } from './pull-requests.ts'
import { type PushOptions, unasked } from './pushes.ts'
import type { RequestEvent } from './request-events.ts'

export type ReceivedRequest = Delivery & { event: RequestEvent }

const none = (reason: PushResult['reason'], detail: string): PushResult => ({ deployment: null, reason, detail })

/** As for a push: what makes no deployment for a reason that may go leaves no trace, and can be sent again. */
export async function takeRequest(
  db: Db,
  options: PushOptions,
  actor: Actor,
  received: ReceivedRequest,
): Promise<PushResult> {
  const { event } = received
  if (event.action === 'other') return none('other_event', `The event ${event.name} is ignored.`)
  const check = await checkCommit(db, options, actor, event)
  return takeInTurn(db, actor, received, (db, turn) => applyRequest(db, options, actor, { ...turn, event, check }))
}

/** Asked before the transaction. A commit of a fork is built only once it is approved, and fetched by then. */
async function checkCommit(
  db: Db,
  { repositories, vault }: PushOptions,
  actor: Actor,
  { action, fromFork, branch, commit }: RequestEvent,
): Promise<PushCheck> {
  if (action !== 'open' || fromFork) return unasked
  const project = await findHooked(db, actor)
  if (project.repo === '' || !project.autoDeploy) return unasked
  const access = await openAccess(db, vault, project.id)
  return repositories.checkPush(project.repo, { branch, commit }, askTimeoutMs, access)
}

async function applyRequest(
  db: Db,
  options: PushOptions,
  actor: Actor,
  { project, key, known, event, check }: Received & { event: RequestEvent; check: PushCheck },
): Promise<PushResult> {
  const { projectId } = key
  if (event.repository.toLowerCase() !== repositoryName(project.repo).toLowerCase()) {
    return none('other_repository', `The project ${project.name} is linked to ${project.repo}, not to this repository.`)
  }
  if (known) {
    return { deployment: known.deploymentId, reason: 'already_deployed', detail: 'This event was already received.' }
  }
  const row = await noteRequest(db, projectId, event)
  if (row === null)
    return none('pull_request_outdated', `A newer event of pull request ${event.number} was already received.`)
  const result = await actOn(db, options, actor, { project, event, row, check })
  if (result.reason === 'auto_deploy_off' || result.reason === 'commit_not_found') return result
  const now = new Date()
  await db.push.create({ data: { ...key, deploymentId: result.deployment, createdAt: now } })
  if (result.reason === 'deployed') await db.pushHook.update({ where: { projectId }, data: { lastPushAt: now } })
  return result
}

/** Writes what the host says; null if it has said something newer before. */
async function noteRequest(db: Db, projectId: string, event: RequestEvent): Promise<PullRequest | null> {
  const { number, ref, title, branch, fromFork, commit, updatedAt: hostUpdatedAt } = event
  const where = { projectId_number: { projectId, number } }
  const before = await db.pullRequest.findUnique({ where })
  if (before?.hostUpdatedAt && hostUpdatedAt && hostUpdatedAt < before.hostUpdatedAt) return null
  const now = new Date()
  const isClosed = event.action === 'close'
  const said = { ref, title, branch, fromFork, commit, ...(hostUpdatedAt && { hostUpdatedAt }), updatedAt: now }
  // A changed title says nothing of whether it is open.
  const state = isClosed
    ? { state: 'CLOSED', closedAt: before?.closedAt ?? now }
    : event.action === 'open' || !before
      ? { state: 'OPEN', closedAt: null }
      : {}
  if (!before) {
    await makeRoom(db, projectId)
    return db.pullRequest.create({ data: { ...said, state: 'OPEN', ...state, projectId, number, createdAt: now } })
  }
  // The deployment is that of the newest commit alone.
  const moved = before.commit === commit ? {} : { deploymentId: null }
  return db.pullRequest.update({ where, data: { ...said, ...state, ...moved } })
}

type Noted = { project: Project; event: RequestEvent; row: PullRequest; check: PushCheck }

async function actOn(db: Db, options: PushOptions, actor: Actor, noted: Noted): Promise<PushResult> {
  const { event, row } = noted
  if (row.state === 'CLOSED') return closeRequest(db, options, noted)
  await reopenBranch(db, { projectId: row.projectId, ref: row.fromFork ? row.ref : row.branch })
  if (row.fromFork) return awaitApproval(noted)
  if (event.action === 'edit') return none('other_event', 'The title of the pull request was updated.')
  const result = await deployRequest(db, options, actor, noted)
  const { projectId, number } = row
  const data = { deploymentId: result.deployment }
  await db.pullRequest.update({ where: { projectId_number: { projectId, number } }, data })
  return result
}

function awaitApproval({ project, row }: Noted): PushResult {
  const { number, commit, deploymentId } = row
  if (isApproved(row) && deploymentId) {
    const detail = `${commit.slice(0, 7)} was already approved and built as ${deploymentId}.`
    return { deployment: deploymentId, reason: 'already_deployed', detail }
  }
  const path = `POST /projects/${project.name}/pull-requests/${number}/approve`
  const detail = `The pull request comes from a fork. ${commit.slice(0, 7)} is built once a member approves it: ${path}.`
  return none('approval_needed', detail)
}

/** As a preview of the branch, unless its push came first. */
async function deployRequest(
  db: Db,
  { urls, region, repositories }: PushOptions,
  actor: Actor,
  { project, event: { branch, commit }, check }: Noted,
): Promise<PushResult> {
  const ref = branch
  const newest = await db.deployment.findFirst({
    where: { projectId: project.id, ref, source: { not: 'upload' } },
    orderBy: { id: 'desc' },
    select: { id: true, state: true, commit: true },
  })
  if (newest?.commit === commit && newest.state !== 'CANCELED') {
    const detail = `${newest.id} is the deployment of ${commit.slice(0, 7)}.`
    return { deployment: newest.id, reason: 'already_deployed', detail }
  }
  const skips = await db.push.count({ where: { projectId: project.id, ref, commit, deploymentId: null } })
  if (skips > 0) {
    return none('paths_unchanged', `The push changed nothing under the watchPaths of the project ${project.name}.`)
  }
  if (!project.autoDeploy) return none('auto_deploy_off', `autoDeploy is off for the project ${project.name}.`)
  if (check.commit === 'missing') {
    return none('commit_not_found', `${project.repo} has no commit ${commit}. Nothing was built or canceled.`)
  }
  if (check.commit === 'present') await supersede(db, urls, { projectId: project.id, ref, before: null })
  const warnings = check.isReached ? [] : [unreachableWarning(repositories, project.repo)]
  const built = { ref, isBranch: true, commit, production: false, source: 'pull_request' } as const
  const plan = { ...built, project, region, warnings }
  const { id } = await createDeployment(db, urls, actor, plan)
  return { deployment: id, reason: 'deployed', detail: `${branch} is being deployed as a preview.` }
}

/** A branch of the same repository may live longer than the request: what was pushed to it stays. */
async function closeRequest(db: Db, { urls, keepHours }: PushOptions, { row }: Noted): Promise<PushResult> {
  const { projectId, fromFork, ref, branch } = row
  const told = (effects: string[]) =>
    none('pull_request_closed', ['The pull request was closed.', ...effects].join(' '))
  if (fromFork) return told(effectsOf(await closeBranch(db, urls, { projectId, ref }), keepHours))
  const ended = { projectId, ref: branch, before: null, sources: ['pull_request'] as const }
  const canceled = await supersede(db, urls, ended)
  return told(effectsOf({ canceled: canceled.length, previews: 0 }, keepHours))
}
