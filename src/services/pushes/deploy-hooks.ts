// Deploy hooks: secret URLs that start a deployment.
import { hash } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { DeployHook, Project } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { isRefName } from '../../platform/git/repositories.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { newId, timeOf } from '../../platform/ids.ts'
import {
  type CreateDeployHook,
  type DeployHookResult,
  DeployHook as DeployHookSchema,
  type DeployHookWithUrl,
} from '../../schemas/deploy-hooks.ts'
import { createDeployment, type PlanOptions, planDeployment } from '../deployments/index.ts'
import type { Actor } from '../identity/index.ts'
import { findProject, findProjectToChange } from '../projects/index.ts'
import { checkQuota } from '../quotas/index.ts'
import { startedDetail } from './deliveries.ts'
import { logChange, newHookSecret } from './push-hooks.ts'
import { lockDeployHooks, shareProject } from './statements.ts'

export type DeployHookView = Static<typeof DeployHookSchema>

const viewRow = viewOf(DeployHookSchema)
const view = (row: DeployHook): DeployHookView => viewRow(row)

/** The version for preconditions. Calling a hook does not change it. */
export function deployHookVersion({ lastUsedAt: _use, ...version }: DeployHookView): unknown {
  return version
}

const hashOf = (secret: string) => Uint8Array.from(hash('sha256', secret, 'buffer'))

async function findRow(db: Db, project: Project, id: string): Promise<DeployHook> {
  const row = await db.deployHook.findFirst({ where: { id, projectId: project.id } })
  if (!row) throw new Fault('not_found', `There is no deploy hook ${id} in ${project.name}.`)
  return row
}

export async function listDeployHooks(
  db: Db,
  actor: Actor,
  key: string,
  page: PageRequest,
): Promise<PageOf<DeployHookView>> {
  const project = await findProject(db, actor, key)
  const { where, ...rest } = byId(page, 'dhk')
  const found = await db.deployHook.findMany({ where: { ...where, projectId: project.id }, ...rest })
  return pageOf(found, page, view, (row) => [row.id])
}

export async function findDeployHook(db: Db, actor: Actor, key: string, id: string): Promise<DeployHookView> {
  return view(await findRow(db, await findProject(db, actor, key), id))
}

/** Checks what the schema can't express. */
export function checkDeployHook({ ref }: { ref?: string | null | undefined }): void {
  if (ref != null && !isRefName(ref)) {
    throw invalidField('#/ref', 'bad_format', 'must be a valid git branch, tag or commit')
  }
}

export async function createDeployHook(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, input }: { key: string; input: Static<typeof CreateDeployHook> },
): Promise<Static<typeof DeployHookWithUrl>> {
  checkDeployHook(input)
  const secret = newHookSecret('brd')
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    if (project.repo === '') {
      throw new Fault('project_without_repository', `${project.name} has no repository for a hook to deploy.`)
    }
    const used = await db.deployHook.count({ where: { projectId: project.id } })
    await checkQuota(db, actor.accountId, 'deployHooks', used)
    const id = newId('dhk')
    const { name, ref = null } = input
    const data = { id, projectId: project.id, name, ref, hash: hashOf(secret), createdAt: timeOf(id) }
    const row = await db.deployHook.create({ data })
    await logChange(db, urls, actor, project)
    return { ...view(row), url: urls.deployHook(secret) }
  })
}

export async function deleteDeployHook(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, id, precondition }: { key: string; id: string; precondition(version: unknown): void },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    precondition(deployHookVersion(view(await findRow(db, project, id))))
    await db.deployHook.delete({ where: { id } })
    await logChange(db, urls, actor, project)
  })
}

/** `ref` is null for the production branch. */
export type CalledHook = { id: string; ref: string | null; actor: Actor; projectId: string }

/** Finds a hook by its secret. Malformed and unknown secrets get the same error. */
export async function findCalledHook(db: Db, secret: string): Promise<CalledHook> {
  const found = /^brd_[0-9A-Za-z]{40}$/.test(secret)
    ? await db.deployHook.findUnique({
        where: { hash: hashOf(secret) },
        include: { project: { include: { account: { select: { suspendedAt: true } } } } },
      })
    : null
  if (!found) throw new Fault('not_found', 'There is no such deploy hook.')
  const { id, project } = found
  if (project.account.suspendedAt) throw new Fault('account_suspended')
  const actor = { accountId: project.accountId, tokenId: id, scopes: [], projectIds: [project.id] }
  return { id, ref: found.ref, actor, projectId: project.id }
}

export type CallOptions = PlanOptions & { urls: Urls }

/** Starts the deployment. Like the API, it queries the repository before the transaction. */
export async function callDeployHook(
  db: Db,
  { urls, ...options }: CallOptions,
  { id, ref: hookRef, actor, projectId }: CalledHook,
): Promise<Static<typeof DeployHookResult>> {
  const input = { project: projectId, ...(hookRef !== null && { ref: hookRef }) }
  const planned = await planDeployment(db, options, actor, input).catch((error) => {
    // Without field errors, because the request has no fields.
    throw error instanceof Fault && error.code === 'ref_not_found' ? new Fault('ref_not_found', error.message) : error
  })
  const { ref } = planned
  const production = hookRef === null || ref === planned.project.productionBranch
  const plan = { ...planned, production }
  return inTransaction(db, async (db) => {
    // Lock order everywhere: project, hooks.
    await shareProject(db, { projectId })
    // Serializes concurrent calls, so the later ones see the deployment of the first.
    const locked = await lockDeployHooks(db, { projectId })
    if (!locked.some((hook) => hook.id === id)) throw new Fault('not_found', 'There is no such deploy hook.')
    await db.deployHook.update({ where: { id }, data: { lastUsedAt: new Date() } })
    // Reuse only a build that has not started: one that has may miss the caller's latest change. A queued build without
    // a commit checks out the newest one of the ref when it starts.
    const commit = { in: [plan.commit, ''] }
    const queued = await db.deployment.findFirst({
      where: { projectId, ref, production, commit, state: 'BUILDING', startedAt: null, source: { not: 'upload' } },
      orderBy: { id: 'desc' },
      select: { id: true },
    })
    if (queued) {
      const detail = `${queued.id} of the same commit is already waiting to be built.`
      return { deployment: queued.id, reason: 'already_queued', detail }
    }
    const created = await createDeployment(db, urls, actor, { ...plan, source: 'hook' })
    return { deployment: created.id, reason: 'deployed', detail: startedDetail(created) }
  })
}
