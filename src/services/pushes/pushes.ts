// A push, from its signature to its deployment: admitted by the hook's secret, taken once, superseding what still builds.
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
  askTimeoutMs,
  createDeployment,
  type PlanOptions,
  reopenBranch,
  supersede,
  unreachableWarning,
} from '../deployments/index.ts'
import { append, eventOf } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { followDefaultBranch, openAccess, storeDefaultBranch } from '../projects/index.ts'
import { deletesBranch, isBackAgain, takeUndeployed } from './deleted-branches.ts'
import { type Delivery, findHooked, type PushResult, type Received, startedDetail, takeInTurn } from './deliveries.ts'
import { newHookSecret } from './push-hooks.ts'
import { hasProof, isSigned, type PushHeaders } from './signatures.ts'
import { readHookSecrets } from './statements.ts'
import { changesOf, watchesAny } from './watch-paths.ts'

export type Push = Static<typeof PushSchema>

export type Admit = (projectId: string, headers: PushHeaders, texts: readonly Buffer[]) => Promise<Actor>

/**
 * Tells who may push to a project. A project that does not exist, one without a hook and a wrong signature get the same
 * refusal after the same work, so that nobody learns which projects there are.
 */
export function createPushGate(db: Db, vault: Vault): Admit {
  let made: Buffer | null = null
  return async (projectId, headers, texts) => {
    // Made for the first request and not before: whoever only describes the routes has no vault.
    made ??= vault.seal(newHookSecret(), placeOf.pushHook(''))
    const decoy = made
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
 * Before the body is read: refuses what no body could sign. It looks at the request alone, because an answer that comes
 * before the body would tell which projects there are.
 */
export function expectSigned(projectId: string, headers: PushHeaders): void {
  if (!isProjectId(projectId) || !hasProof(headers)) throw new Fault('invalid_signature')
}

const isProjectId = (text: string) => /^prj_[0-9a-z]{24}$/.test(text)

/** Why a push makes no deployment, or the branch of which it makes one. */
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
  /** How long previews of a branch that was deleted are kept; null: as long as others. */
  keepHours: number | null
}

/** Makes the deployment of a push. What makes none leaves no trace: it can be sent again when the reason is gone. */
export async function takePush(
  db: Db,
  options: PushOptions,
  actor: Actor,
  received: ReceivedPush,
): Promise<PushResult> {
  const check = await checkPush(db, options, actor, received.push)
  const isBack = await isBackAgain(db, options, actor.projectIds![0]!, received.push)
  return takeInTurn(db, actor, received, (db, turn) =>
    deployPush(db, options, actor, { ...turn, push: received.push, check, isBack }),
  )
}

export const unasked: PushCheck = { commit: 'unknown', isReached: true, defaultBranch: null }

/** What the repository says of the push, asked before the transaction, and not at all of one that makes no deployment. */
async function checkPush(db: Db, { repositories, vault }: PushOptions, actor: Actor, push: Push): Promise<PushCheck> {
  const project = await findHooked(db, actor)
  const wanted = branchOf(project, push)
  if (!('branch' in wanted)) return unasked
  const access = await openAccess(db, vault, project.id)
  const pushed = { branch: wanted.branch, commit: push.after }
  const check = await repositories.checkPush(project.repo, pushed, askTimeoutMs, access)
  // Who signed the push may be asked too, where the host can't be reached.
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
  { project, key, known, push, check, isBack }: Received & { push: Push; check: PushCheck; isBack: boolean },
): Promise<PushResult> {
  const { projectId } = key
  const wanted = branchOf(project, push)
  if (!('branch' in wanted)) {
    return takeUndeployed(db, urls, { ...key, push, result: wanted, isBack, keepHours })
  }
  const { branch } = wanted
  if (known?.deploymentId) {
    const detail = `This push was already received, as ${known.deploymentId}.`
    return { deployment: known.deploymentId, reason: 'already_deployed', detail }
  }
  const row = { ...key, ref: branch, commit: push.after }
  if (check.commit === 'missing') {
    const detail = `${project.repo} has no commit ${push.after}. Nothing was built or canceled.`
    return { deployment: null, reason: 'commit_not_found', detail }
  }
  await reopenBranch(db, { projectId, ref: branch })
  const skipped = await skipOf(db, project, branch, push)
  if (skipped) {
    if (!known) await noteSkip(db, actor, project, { ...row, detail: skipped.detail })
    return skipped
  }
  const production = branch === project.productionBranch
  const byRequest = production ? null : await deployedByRequest(db, projectId, branch, push.after)
  const now = new Date()
  const note = async (deploymentId: string) => {
    // One that was skipped, and is built now that other paths are watched.
    if (known) await db.push.delete({ where: { projectId_delivery: { projectId, delivery: known.delivery } } })
    await db.push.create({ data: { ...row, deploymentId, createdAt: now } })
    await db.pushHook.update({ where: { projectId }, data: { lastPushAt: now } })
  }
  if (byRequest !== null) {
    await note(byRequest)
    const detail = `Its pull request came first: ${byRequest} is the deployment of this commit.`
    return { deployment: byRequest, reason: 'already_deployed', detail }
  }
  // A commit that nobody has seen yet ends no build: see `supersedeBy`.
  const ends = check.commit === 'present'
  const superseded = ends ? await supersede(db, urls, { projectId, ref: branch, before: null }) : []
  const warnings = check.isReached ? [] : [unreachableWarning(repositories, project.repo)]
  const plan = { project, ref: branch, commit: push.after, production, region, source: 'push', warnings } as const
  const made = await createDeployment(db, urls, actor, plan)
  await note(made.id)
  const instead = superseded.length > 0 ? ` ${superseded.join(' and ')} was canceled for it.` : ''
  return { deployment: made.id, reason: 'deployed', detail: startedDetail(made) + instead }
}

/** The deployment that a pull request made of the same commit, if it is the newest of the branch. */
async function deployedByRequest(db: Db, projectId: string, ref: string, commit: string): Promise<string | null> {
  const newest = await db.deployment.findFirst({
    where: { projectId, ref, source: { not: 'upload' } },
    orderBy: { id: 'desc' },
    select: { id: true, source: true, state: true, commit: true },
  })
  const isIt = newest?.source === 'pull_request' && newest.commit === commit && newest.state !== 'CANCELED'
  return isIt ? newest.id : null
}

/** Why a push need not be built: since what was deployed of its branch, nothing changed that the project watches. */
async function skipOf(db: Db, project: Project, ref: string, push: Push): Promise<PushResult | null> {
  if (project.watchPaths.length === 0) return null
  const changes = changesOf(push)
  if (!changes || watchesAny(project.watchPaths, changes.files)) return null
  const newest = await db.deployment.findFirst({
    where: { projectId: project.id, ref, source: { not: 'upload' } },
    orderBy: { id: 'desc' },
    select: { state: true, commit: true, createdAt: true },
  })
  // What failed or was canceled is not there yet: the next push brings it.
  if (newest?.state !== 'READY' && newest?.state !== 'BUILDING') return null
  // A push that never came here may have changed anything: what was deployed, or skipped since, must be the base.
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

async function noteSkip(db: Db, actor: Actor, project: Project, { detail, ...row }: Skip): Promise<void> {
  const { projectId, ref, commit } = row
  const createdAt = new Date()
  await db.push.create({ data: { ...row, createdAt } })
  const skip = { at: createdAt.toISOString(), project: project.name, ref, commit, reason: 'paths_unchanged', detail }
  await db.pushHook.update({ where: { projectId }, data: { lastSkip: skip } })
  await append(db, [eventOf(actor, 'push.skipped', { subject: projectId, projectId, data: skip })])
}

const keptMs = 7 * 24 * 60 * 60_000

/** A week is longer than any repository host goes on trying. */
export function forgetOldPushes(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { createdAt: { lt: new Date(Date.now() - keptMs) } }
  return deleteInBatches(signal, (limit) => db.push.deleteMany({ where, limit }))
}
