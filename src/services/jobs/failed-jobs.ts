// Jobs that were given up: for the operator to read, to run again or to delete.
import type { Static } from '@sinclair/typebox'
import type { Job as JobRow } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import { type PageOf, type PageRequest, pageOf } from '../../platform/page.ts'
import type { Job } from '../../schemas/jobs.ts'
import { requeueJob } from './statements.ts'

export type FailedJob = Static<typeof Job>

function viewJob({ id, kind, key, attempts, lastError, failedAt }: JobRow): FailedJob {
  return { id: String(id), kind, key, attempts, lastError, failedAt: failedAt?.toISOString() ?? null }
}

const isFailed = { failedAt: { not: null } }

/** The newest last, as in a log. */
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

/** Queues the job again: what waits now in its place. */
export async function retryFailedJob(db: Db, id: string): Promise<FailedJob> {
  return inTransaction(db, async (db) => {
    await findFailedJob(db, id)
    const [made] = await requeueJob(db, { id })
    if (!made) throw new Fault('not_found', `There is no failed job ${id}.`)
    return viewJob(await db.job.findUniqueOrThrow({ where: { id: BigInt(made.id) } }))
  })
}

export type JobRemoval = { id: string; precondition?(view: FailedJob): void }

export async function discardFailedJob(db: Db, { id, precondition }: JobRemoval): Promise<void> {
  precondition?.(await findFailedJob(db, id))
  const { count } = isId(id) ? await db.job.deleteMany({ where: { id: BigInt(id), ...isFailed } }) : { count: 0 }
  if (count === 0) throw new Fault('not_found', `There is no failed job ${id}.`)
}
