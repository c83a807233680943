// Pull and merge request events: recorded, and deployed if the branch is in the same repository.
import type { Project, PullRequest } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import type { PushCheck } from '../../platform/git/repositories.ts'
import { repositoryName } from '../../platform/git/repository-address.ts'
import {
  closeBranch,
  createDeployment,
  reopenBranch,
  repositoryTimeoutMs,
  supersede,
  unreachableWarning,
} from '../deployments/index.ts'
import type { Actor } from '../identity/index.ts'
import { openAccess } from '../projects/index.ts'
import { describeClosedBranch } from './deleted-branches.ts'
import { type Delivery, findHookProject, type LockedDelivery, type PushResult, receiveInTurn } from './deliveries.ts'
import type { PullRequestEvent } from './pull-request-events.ts'
import { isApproved, makeRoom } from './pull-requests.ts'
import { type PushOptions, unchecked } from './pushes.ts'

export type ReceivedPullRequest = Delivery & { event: PullRequestEvent }

const none = (reason: PushResult['reason'], detail: string): PushResult => ({ deployment: null, reason, detail })

/** Handles an event. If the reason against a deployment may pass, nothing is stored, so the host can send it again. */
export async function receivePullRequest(
  db: Db,
  options: PushOptions,
  actor: Actor,
  received: ReceivedPullRequest,
): Promise<PushResult> {
  const { event } = received
  if (event.action === 'other') return none('other_event', `The event ${event.name} is ignored.`)
  const check = await checkCommit(db, options, actor, event)
  return receiveInTurn(db, actor, received, (db, turn) => applyRequest(db, options, actor, { ...turn, event, check }))
}

/** Queries the repository before the transaction. Forks need no check: they are built only after an approval. */
async function checkCommit(
  db: Db,
  { repositories, vault }: PushOptions,
  actor: Actor,
  { action, fromFork, branch, commit }: PullRequestEvent,
): Promise<PushCheck> {
  if (action !== 'open' || fromFork) return unchecked
  const project = await findHookProject(db, actor)
  if (project.repo === '' || !project.autoDeploy) return unchecked
  const access = await openAccess(db, vault, project.id)
  return repositories.checkPush(project.repo, { branch, commit }, repositoryTimeoutMs, access)
}

async function applyRequest(
  db: Db,
  options: PushOptions,
  actor: Actor,
  { project, key, earlier, event, check }: LockedDelivery & { event: PullRequestEvent; check: PushCheck },
): Promise<PushResult> {
  const { projectId } = key
  if (event.repository.toLowerCase() !== repositoryName(project.repo).toLowerCase()) {
    return none('other_repository', `The project ${project.name} is linked to ${project.repo}, not to this repository.`)
  }
  if (earlier) {
    return { deployment: earlier.deploymentId, reason: 'already_deployed', detail: 'This event was already received.' }
  }
  const row = await recordPullRequest(db, projectId, event)
  if (row === null)
    return none('pull_request_outdated', `A newer event of pull request ${event.number} was already received.`)
  const result = await deployOrClose(db, options, actor, { project, event, row, check })
  if (result.reason === 'auto_deploy_off' || result.reason === 'commit_not_found') return result
  const now = new Date()
  await db.push.create({ data: { ...key, deploymentId: result.deployment, createdAt: now } })
  if (result.reason === 'deployed') await db.pushHook.update({ where: { projectId }, data: { lastPushAt: now } })
  return result
}

/** Stores the event. Returns null if a newer one was stored already. */
async function recordPullRequest(db: Db, projectId: string, event: PullRequestEvent): Promise<PullRequest | null> {
  const { number, ref, title, branch, fromFork, commit, updatedAt: hostUpdatedAt } = event
  const where = { projectId_number: { projectId, number } }
  const before = await db.pullRequest.findUnique({ where })
  if (before?.hostUpdatedAt && hostUpdatedAt && hostUpdatedAt < before.hostUpdatedAt) return null
  const now = new Date()
  const isClosed = event.action === 'close'
  const fields = { ref, title, branch, fromFork, commit, ...(hostUpdatedAt && { hostUpdatedAt }), updatedAt: now }
  // A changed title does not reveal whether the pull request is open.
  const state = isClosed
    ? { state: 'CLOSED', closedAt: before?.closedAt ?? now }
    : event.action === 'open' || !before
      ? { state: 'OPEN', closedAt: null }
      : {}
  if (!before) {
    await makeRoom(db, projectId)
    return db.pullRequest.create({ data: { ...fields, state: 'OPEN', ...state, projectId, number, createdAt: now } })
  }
  // `deploymentId` always belongs to the newest commit.
  const reset = before.commit === commit ? {} : { deploymentId: null }
  return db.pullRequest.update({ where, data: { ...fields, ...state, ...reset } })
}

type RecordedEvent = { project: Project; event: PullRequestEvent; row: PullRequest; check: PushCheck }

async function deployOrClose(db: Db, options: PushOptions, actor: Actor, recorded: RecordedEvent): Promise<PushResult> {
  const { event, row } = recorded
  if (row.state === 'CLOSED') return closeRequest(db, options, recorded)
  await reopenBranch(db, { projectId: row.projectId, ref: row.fromFork ? row.ref : row.branch })
  if (row.fromFork) return awaitApproval(recorded)
  if (event.action === 'edit') return none('other_event', 'The title of the pull request was updated.')
  const result = await deployRequest(db, options, actor, recorded)
  const { projectId, number } = row
  const data = { deploymentId: result.deployment }
  await db.pullRequest.update({ where: { projectId_number: { projectId, number } }, data })
  return result
}

function awaitApproval({ project, row }: RecordedEvent): PushResult {
  const { number, commit, deploymentId } = row
  if (isApproved(row) && deploymentId) {
    const detail = `${commit.slice(0, 7)} was already approved and built as ${deploymentId}.`
    return { deployment: deploymentId, reason: 'already_deployed', detail }
  }
  const path = `POST /projects/${project.name}/pull-requests/${number}/approve`
  const detail = `The pull request comes from a fork. ${commit.slice(0, 7)} is built once a member approves it: ${path}.`
  return none('approval_needed', detail)
}

/** Deploys the branch as a preview unless its push did so already. */
async function deployRequest(
  db: Db,
  { urls, region, repositories }: PushOptions,
  actor: Actor,
  { project, event: { branch, commit }, check }: RecordedEvent,
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

/** Closes the branch of a fork. A branch of the same repository may outlive the request, so its pushes stay. */
async function closeRequest(db: Db, { urls, keepHours }: PushOptions, { row }: RecordedEvent): Promise<PushResult> {
  const { projectId, fromFork, ref, branch } = row
  const closedResult = (effects: string[]) =>
    none('pull_request_closed', ['The pull request was closed.', ...effects].join(' '))
  if (fromFork) return closedResult(describeClosedBranch(await closeBranch(db, urls, { projectId, ref }), keepHours))
  const ended = { projectId, ref: branch, before: null, sources: ['pull_request'] as const }
  const canceled = await supersede(db, urls, ended)
  return closedResult(describeClosedBranch({ canceled: canceled.length, previews: 0 }, keepHours))
}
