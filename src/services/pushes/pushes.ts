// Pushes, from the signature check to the deployment, which supersedes earlier builds of the branch.
import type { Static } from '@sinclair/typebox'
import type { Project } from '../../generated/client.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import type { Db } from '../../platform/database/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { isRefName, type PushCheck } from '../../platform/git/repositories.ts'
import { repositoryName } from '../../platform/git/repository-address.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import type { Push as PushSchema } from '../../schemas/push-hooks.ts'
import {
  createDeployment,
  type PlanOptions,
  reopenBranch,
  repositoryTimeoutMs,
  supersede,
  unreachableWarning,
} from '../deployments/index.ts'
import { append, eventOf } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { followDefaultBranch, openAccess, storeDefaultBranch } from '../projects/index.ts'
import { deletesBranch, handleUndeployedPush, isBranchRestored } from './deleted-branches.ts'
import {
  type Delivery,
  findHookProject,
  type LockedDelivery,
  type PushResult,
  receiveInTurn,
  startedDetail,
} from './deliveries.ts'
import { newHookSecret } from './push-hooks.ts'
import { hasSignature, isSigned, type PushHeaders } from './signatures.ts'
import { readHookSecrets } from './statements.ts'
import { changesOf, matchesAny } from './watch-paths.ts'

export type Push = Static<typeof PushSchema>

export type PushVerifier = (projectId: string, headers: PushHeaders, texts: readonly Buffer[]) => Promise<Actor>

/**
 * Checks signatures of pushes. A missing project, a project without a hook and a wrong signature get the same error
 * after the same work, so nobody learns which projects exist.
 */
export function createPushVerifier(db: Db, vault: Vault): PushVerifier {
  let sealedDecoy: Buffer | null = null
  return async (projectId, headers, texts) => {
    // Created on the first request, because generating the OpenAPI document has no vault.
    sealedDecoy ??= vault.seal(newHookSecret(), placeOf.pushHook(''))
    const decoy = sealedDecoy
    const [hook] = await readHookSecrets(db, { projectId: isProjectId(projectId) ? projectId : '' })
    const open = (sealed: Uint8Array | null | undefined) =>
      vault.open(sealed ?? decoy, placeOf.pushHook(sealed ? projectId : '')).toString()
    const secrets = [open(hook?.secret), open(hook?.oldSecret)]
    const signed = isSigned(headers, texts, secrets)
    if (!signed || !hook) throw new Fault('invalid_signature')
    if (hook.suspended) throw new Fault('account_suspended')
    return { accountId: hook.accountId, tokenId: 'system', scopes: [], projectIds: [projectId] }
  }
}

/**
 * Refuses requests without a signature before their body is read. It uses only the request, because an early response
 * that depended on the database would reveal which projects exist.
 */
export function requireSignatureHeaders(projectId: string, headers: PushHeaders): void {
  if (!isProjectId(projectId) || !hasSignature(headers)) throw new Fault('invalid_signature')
}

const isProjectId = (text: string) => /^prj_[0-9a-z]{24}$/.test(text)

/** The branch to deploy for a push, or why it is not deployed. */
function branchOf(project: Project, push: Push): PushResult | { branch: string } {
  const none = (reason: PushResult['reason'], detail: string): PushResult => ({ deployment: null, reason, detail })
  const repo = push.repository?.full_name ?? push.project?.path_with_namespace ?? ''
  if (repo.toLowerCase() !== repositoryName(project.repo).toLowerCase()) {
    return none('other_repository', `The project ${project.name} is linked to ${project.repo}, not to this repository.`)
  }
  const branch = /^refs\/heads\/(.+)$/s.exec(push.ref)?.[1]
  if (branch === undefined)
    return none('not_a_branch', 'Only branches are deployed on push. Deploy tags through the API.')
  if (deletesBranch(push)) return none('branch_deleted', 'The branch was deleted.')
  if (!isRefName(branch) || !branch.isWellFormed()) {
    throw invalidField('#/ref', 'bad_format', 'must be a valid git branch name')
  }
  if (!project.autoDeploy) return none('auto_deploy_off', `autoDeploy is off for the project ${project.name}.`)
  return { branch }
}

export type ReceivedPush = Delivery & { push: Push }

export type PushOptions = PlanOptions & {
  urls: Urls
  /** Retention of a deleted branch's previews; null: the same as other previews. */
  keepHours: number | null
}

/** Starts the deployment of a push. A push without one is not stored, so the host can send it again later. */
export async function receivePush(
  db: Db,
  options: PushOptions,
  actor: Actor,
  received: ReceivedPush,
): Promise<PushResult> {
  const check = await checkPush(db, options, actor, received.push)
  const isRestored = await isBranchRestored(db, options, actor.projectIds![0]!, received.push)
  return receiveInTurn(db, actor, received, (db, turn) =>
    deployPush(db, options, actor, { ...turn, push: received.push, check, isRestored }),
  )
}

export const unchecked: PushCheck = { commit: 'unknown', isReached: true, defaultBranch: null }

/** Checks a push that will be deployed with the repository; call it before the transaction. */
async function checkPush(db: Db, { repositories, vault }: PushOptions, actor: Actor, push: Push): Promise<PushCheck> {
  const project = await findHookProject(db, actor)
  const target = branchOf(project, push)
  if (!('branch' in target)) return unchecked
  const access = await openAccess(db, vault, project.id)
  const pushed = { branch: target.branch, commit: push.after }
  const check = await repositories.checkPush(project.repo, pushed, repositoryTimeoutMs, access)
  // If we can't reach the host, use the default branch from the signed push.
  const defaultBranch = check.defaultBranch ?? defaultBranchIn(push)
  if (defaultBranch !== null && followDefaultBranch(project, defaultBranch)) {
    await storeDefaultBranch(db, project.id, { repo: project.repo, defaultBranch })
  }
  return check
}

function defaultBranchIn(push: Push): string | null {
  const name = push.repository?.default_branch ?? push.project?.default_branch
  return typeof name === 'string' && isRefName(name) && name.isWellFormed() ? name : null
}

async function deployPush(
  db: Db,
  { urls, region, repositories, keepHours }: PushOptions,
  actor: Actor,
  {
    project,
    key,
    earlier,
    push,
    check,
    isRestored,
  }: LockedDelivery & { push: Push; check: PushCheck; isRestored: boolean },
): Promise<PushResult> {
  const { projectId } = key
  const target = branchOf(project, push)
  if (!('branch' in target)) {
    return handleUndeployedPush(db, urls, { ...key, push, result: target, isRestored, keepHours })
  }
  const { branch } = target
  if (earlier?.deploymentId) {
    const detail = `This push was already received, as ${earlier.deploymentId}.`
    return { deployment: earlier.deploymentId, reason: 'already_deployed', detail }
  }
  const row = { ...key, ref: branch, commit: push.after }
  if (check.commit === 'missing') {
    const detail = `${project.repo} has no commit ${push.after}. Nothing was built or canceled.`
    return { deployment: null, reason: 'commit_not_found', detail }
  }
  await reopenBranch(db, { projectId, ref: branch })
  const skipped = await skipOf(db, project, branch, push)
  if (skipped) {
    if (!earlier) await recordSkip(db, actor, project, { ...row, detail: skipped.detail })
    return skipped
  }
  const production = branch === project.productionBranch
  const byRequest = production ? null : await deployedByRequest(db, projectId, branch, push.after)
  const now = new Date()
  const record = async (deploymentId: string) => {
    // It was skipped before the watched paths changed.
    if (earlier) await db.push.delete({ where: { projectId_delivery: { projectId, delivery: earlier.delivery } } })
    await db.push.create({ data: { ...row, deploymentId, createdAt: now } })
    await db.pushHook.update({ where: { projectId }, data: { lastPushAt: now } })
  }
  if (byRequest !== null) {
    await record(byRequest)
    const detail = `Its pull request came first: ${byRequest} is the deployment of this commit.`
    return { deployment: byRequest, reason: 'already_deployed', detail }
  }
  // A commit that we have not confirmed cancels no build: see `supersedeBy`.
  const isConfirmed = check.commit === 'present'
  const superseded = isConfirmed ? await supersede(db, urls, { projectId, ref: branch, before: null }) : []
  const warnings = check.isReached ? [] : [unreachableWarning(repositories, project.repo)]
  const plan = { project, ref: branch, commit: push.after, production, region, source: 'push', warnings } as const
  const created = await createDeployment(db, urls, actor, plan)
  await record(created.id)
  const canceled = superseded.length > 0 ? ` ${superseded.join(' and ')} was canceled for it.` : ''
  return { deployment: created.id, reason: 'deployed', detail: startedDetail(created) + canceled }
}

/** The newest deployment of the branch, if a pull request started it for the same commit. */
async function deployedByRequest(db: Db, projectId: string, ref: string, commit: string): Promise<string | null> {
  const newest = await db.deployment.findFirst({
    where: { projectId, ref, source: { not: 'upload' } },
    orderBy: { id: 'desc' },
    select: { id: true, source: true, state: true, commit: true },
  })
  const matches = newest?.source === 'pull_request' && newest.commit === commit && newest.state !== 'CANCELED'
  return matches ? newest.id : null
}

/** The result of a push to skip: no watched path has changed since the last deployment of its branch. */
async function skipOf(db: Db, project: Project, ref: string, push: Push): Promise<PushResult | null> {
  if (project.watchPaths.length === 0) return null
  const changes = changesOf(push)
  if (!changes || matchesAny(project.watchPaths, changes.files)) return null
  const newest = await db.deployment.findFirst({
    where: { projectId: project.id, ref, source: { not: 'upload' } },
    orderBy: { id: 'desc' },
    select: { state: true, commit: true, createdAt: true },
  })
  // Changes of a failed or canceled deployment are still missing, so the next push must include them.
  if (newest?.state !== 'READY' && newest?.state !== 'BUILDING') return null
  // We may have missed a push with other changes, unless this one is based on a deployed or skipped commit.
  const { before, files } = changes
  const skippedSince = {
    projectId: project.id,
    ref,
    commit: before,
    deploymentId: null,
    createdAt: { gte: newest.createdAt },
  }
  if (newest.commit !== before && (await db.push.count({ where: skippedSince })) === 0) return null
  const count = files.length === 1 ? 'The only changed file is not' : `None of the ${files.length} changed files is`
  const detail = `${count} under the watchPaths of the project ${project.name}.`
  return { deployment: null, reason: 'paths_unchanged', detail }
}

type Skip = {
  projectId: string
  delivery: string
  digest: Uint8Array<ArrayBuffer>
  ref: string
  commit: string
  detail: string
}

async function recordSkip(db: Db, actor: Actor, project: Project, { detail, ...row }: Skip): Promise<void> {
  const { projectId, ref, commit } = row
  const createdAt = new Date()
  await db.push.create({ data: { ...row, createdAt } })
  const skip = { at: createdAt.toISOString(), project: project.name, ref, commit, reason: 'paths_unchanged', detail }
  await db.pushHook.update({ where: { projectId }, data: { lastSkip: skip } })
  await append(db, [eventOf(actor, 'push.skipped', { subject: projectId, projectId, data: skip })])
}

const retentionMs = 7 * 24 * 60 * 60_000

/** Deletes pushes after a week, longer than any repository host retries. */
export function deleteOldPushes(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { createdAt: { lt: new Date(Date.now() - retentionMs) } }
  return deleteInBatches(signal, (limit) => db.push.deleteMany({ where, limit }))
}
