// Failed jobs, for the operator to list, retry or discard.
import type { Static } from '@sinclair/typebox'
import type { Job as JobRow } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { Job } from '../../schemas/jobs.ts'
import { createDeployment, type DeploymentView, withProject } from '../deployments/index.ts'
import { copySource, requeueJob } from './statements.ts'

export type FailedJob = Static<typeof Job>

const viewRow = viewOf(Job)
const viewJob = (row: JobRow): FailedJob => viewRow(row, { id: String(row.id) })

const isFailed = { failedAt: { not: null } }

/** Newest last, as in a log. */
export async function listFailedJobs(db: Db): Promise<FailedJob[]> {
  const rows = await db.job.findMany({ where: isFailed, orderBy: [{ failedAt: 'asc' }, { id: 'asc' }] })
  return rows.map(viewJob)
}

export async function pageOfFailedJobs(db: Db, page: PageRequest): Promise<PageOf<FailedJob>> {
  const { order, limit, after } = page
  const rows = await db.job.findMany({
    where: { AND: [isFailed, after ? behind(after, order === 'asc' ? 'gt' : 'lt') : {}] },
    orderBy: [{ failedAt: order }, { id: order }],
    take: limit + 1,
  })
  return pageOf(rows, page, viewJob, ({ id, failedAt }) => [failedAt!.toISOString(), String(id)])
}

function behind([time, id]: string[], than: 'gt' | 'lt') {
  const failedAt = new Date(time!)
  if (Number.isNaN(failedAt.getTime()) || !isId(id!)) throw new Fault('invalid_cursor')
  return { OR: [{ failedAt: { [than]: failedAt } }, { failedAt, id: { [than]: BigInt(id!) } }] }
}

const isId = (text: string) => /^\d{1,18}$/.test(text)

export async function findFailedJob(db: Db, id: string): Promise<FailedJob> {
  const found = isId(id) ? await db.job.findFirst({ where: { id: BigInt(id), ...isFailed } }) : null
  if (!found) throw new Fault('not_found', `There is no failed job ${id}.`)
  return viewJob(found)
}

/** Queues the job again and returns the queued job. The build of a failed deployment starts a new deployment. */
export async function retryFailedJob(db: Db, urls: Urls, id: string): Promise<FailedJob> {
  return inTransaction(db, async (db) => {
    const { kind, key } = await findFailedJob(db, id)
    const deploymentId = kind === 'build' && key !== null ? await deployAgain(db, urls, key) : null
    if (deploymentId !== null) {
      await discardFailedJob(db, { id })
      return viewJob(await db.job.findFirstOrThrow({ where: { kind: 'build', key: deploymentId } }))
    }
    const [queued] = await requeueJob(db, { id })
    if (!queued) throw new Fault('not_found', `There is no failed job ${id}.`)
    return viewJob(await db.job.findUniqueOrThrow({ where: { id: BigInt(queued.id) } }))
  })
}

/**
 * Deploys the commit of a failed deployment again, because a failed deployment is final and was reported as such.
 * Throws if that would replace a newer deployment. Returns null if the deployment has not failed.
 */
async function deployAgain(db: Db, urls: Urls, id: string): Promise<string | null> {
  const failed = await db.deployment.findUnique({ where: { id }, include: withProject })
  if (failed?.state !== 'ERROR') return null
  const { accountId, projectId, ref, branchLabel, commit, production, region, source, untrusted } = failed
  const newer = await db.deployment.findFirst({ where: { projectId, ref, production, id: { gt: id } } })
  if (newer) {
    const detail = `The deployment ${id} failed, and ${newer.id} is newer for the same project and ref. Discard the job.`
    throw new Fault('deployment_finished', detail)
  }
  const actor = { accountId, tokenId: 'system', scopes: [], projectIds: null }
  const isBranch = branchLabel !== null
  const plan = { ref, isBranch, commit, production, region, source: source as DeploymentView['source'], untrusted }
  const { name, pinnedDeploymentId } = failed.project
  const project = { id: projectId, name, pinnedDeploymentId }
  const created = await createDeployment(db, urls, actor, { ...plan, project })
  if (source === 'upload') await copySource(db, { from: id, to: created.id })
  return created.id
}

export type JobRemoval = { id: string; precondition?(view: FailedJob): void }

export async function discardFailedJob(db: Db, { id, precondition }: JobRemoval): Promise<void> {
  precondition?.(await findFailedJob(db, id))
  const { count } = isId(id) ? await db.job.deleteMany({ where: { id: BigInt(id), ...isFailed } }) : { count: 0 }
  if (count === 0) throw new Fault('not_found', `There is no failed job ${id}.`)
}
