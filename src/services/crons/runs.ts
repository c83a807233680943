// Runs of crons: each due time starts one run, which ends with an outcome.
import { enqueue } from '../../jobs/queue.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { nextRun, parseSchedule } from '../../platform/cron-schedule.ts'
import { type Database, type Db, inTransaction } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { newId } from '../../platform/ids.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { appendLines } from '../deployments/index.ts'
import { openProductionVariable } from '../projects/index.ts'
import { findNotice } from '../takedowns/index.ts'
import { deleteSurplusRuns, lockCron, queueForgottenCrons, readCronTarget } from './statements.ts'

/** A started run: what to call, and with which secret. */
export type StartedRun = { id: string; path: string; label: string; deploymentId: string; secret: string | null }

export type RunResult = {
  outcome: 'ok' | 'failed' | 'skipped'
  status: number | null
  durationMs: number | null
  error: string | null
}

const lostOutcome = { outcome: 'failed', error: 'The worker was lostOutcome before the response arrived.' }

/**
 * Starts the due run and queues the next one in one transaction, so a concurrent worker finds nothing due. Missed times
 * are skipped. Returns null if there is nothing to call.
 */
export async function startRun(
  db: Db,
  { urls, vault }: { urls: Urls; vault: Vault },
  cronId: string,
): Promise<StartedRun | null> {
  return inTransaction(db, async (db) => {
    const [cron] = await lockCron(db, { id: cronId })
    if (!cron) return null
    const { projectId, path, due, now } = cron
    const nextAt = due ? nextRun(parseSchedule(cron.schedule), now)! : cron.nextAt
    await enqueue(db, { kind: 'cron', key: cronId, payload: { cronId }, runAt: nextAt })
    if (!due) return null
    await db.cron.update({ where: { id: cronId }, data: { nextAt } })
    await db.cronRun.updateMany({ where: { cronId, outcome: 'running' }, data: lostOutcome })
    const run = { id: newId('crr'), cronId, dueAt: cron.nextAt, startedAt: now }
    const [target] = await readCronTarget(db, { projectId })
    const refusal = await refusalOf(db, urls, projectId, target)
    await db.cronRun.create({ data: { ...run, outcome: refusal ? 'skipped' : 'running', error: refusal } })
    if (refusal || !target?.deploymentId) return null
    const secret = await openProductionVariable(db, vault, projectId, 'CRON_SECRET')
    return { id: run.id, path, label: target.label, deploymentId: target.deploymentId, secret }
  })
}

type Target = { label: string; deploymentId: string | null; suspended: boolean }

/** The reason to skip the run, or null. */
async function refusalOf(db: Db, urls: Urls, projectId: string, target: Target | undefined): Promise<string | null> {
  if (!target?.deploymentId) return 'Skipped: no deployment serves production.'
  if (target.suspended) return 'Skipped: the account is suspended.'
  if (await findNotice(db, projectId, urls.host(target.label))) return 'Skipped: production is taken down.'
  return null
}

/** Ends a run and logs it in the called deployment. */
export async function endRun(db: Db, { id, path, deploymentId }: StartedRun, result: RunResult): Promise<void> {
  const { count } = await db.cronRun.updateMany({ where: { id, outcome: 'running' }, data: result })
  // It was deleted with its cron or marked as lost.
  if (count === 0) return
  const { status, durationMs, error } = result
  const text = `cron ${path}: ${status ?? 'no response'} in ${durationMs} ms${error ? `. ${error}` : ''}`
  // The deployment may be deleted by now.
  if ((await db.deployment.count({ where: { id: deploymentId } })) === 0) return
  await appendLines(db, deploymentId, [{ stream: 'system', step: 'run', text, at: new Date() }])
}

const overdueMs = 10 * 60_000

/** Queues overdue crons without a job, and ends runs of lost workers. Returns the number of queued crons. */
export async function requeueForgottenCrons(db: Database): Promise<number> {
  const before = new Date(Date.now() - overdueMs)
  await db.cronRun.updateMany({ where: { outcome: 'running', startedAt: { lt: before } }, data: lostOutcome })
  return (await queueForgottenCrons(db, { before })).length
}

const maxRuns = 50

export function deleteOldRuns(db: Db, signal?: AbortSignal): Promise<number> {
  return deleteInBatches(signal, async (limit) => (await deleteSurplusRuns(db, { keep: maxRuns, limit }))[0]!)
}
