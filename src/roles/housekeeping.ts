// Housekeeping: the worker role's periodic tasks.
import { Counter } from 'prom-client'
import { forgetFailedJobs } from '../jobs/queue.ts'
import { forgetOldTasks, startTasks, type Task, type Tasks } from '../jobs/tasks.ts'
import type { Database } from '../platform/database/database.ts'
import { recordStoredBytes } from '../services/accounts/index.ts'
import { deleteOldRuns, requeueForgottenCrons } from '../services/crons/index.ts'
import {
  deleteOldLogLines,
  deleteOldRuntimeLines,
  endUnfinished,
  removeClosedBranches,
  removeOldDeployments,
} from '../services/deployments/index.ts'
import {
  deleteOldUpdates,
  requeueForgottenSigning,
  requeueOverdueAliases,
  requeueOverdueZones,
} from '../services/dns/index.ts'
import { deleteOldHolds } from '../services/domains/index.ts'
import { maintainEventMonths } from '../services/events/index.ts'
import { deleteOldKeys } from '../services/idempotency/index.ts'
import { deleteOldMails } from '../services/mail/index.ts'
import { deleteLostNodes } from '../services/nodes/index.ts'
import { deleteOldExchanges } from '../services/oidc/index.ts'
import { deleteExpiredSignIns } from '../services/people/index.ts'
import { deleteOldPullRequests, deleteOldPushes } from '../services/pushes/index.ts'
import { forgetEndedTokens } from '../services/tokens/index.ts'
import { deleteOldTraffic } from '../services/traffic/index.ts'
import { deleteOldUploads } from '../services/uploads/index.ts'
import { requeueForgottenChecks } from '../services/verification/index.ts'
import { pruneDeliveries, pruneSurplus } from '../services/webhooks/index.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export type HousekeepingDeps = Pick<Shared, 'config' | 'urls' | 'db' | 'log' | 'registry'>

/** Deletes what has expired and returns how much that was. */
type Removal = (signal: AbortSignal) => Promise<number>

/** Removes what is older than some hours; nothing if it is kept forever. */
function afterHours(
  hours: number | null,
  remove: (before: Date, signal: AbortSignal) => Promise<number>,
): Removal | null {
  return hours === null ? null : (signal) => remove(new Date(Date.now() - hours * hourMs), signal)
}

const afterDays = (days: number | null, remove: (before: Date, signal: AbortSignal) => Promise<number>) =>
  afterHours(days === null ? null : 24 * days, remove)

function removalsOf({ config, urls, db, log }: HousekeepingDeps): Record<string, Removal | null> {
  const { eventsMonths, logDays, previews, previewDays, deletedBranchHours, deliveryDays, failedJobDays } =
    config.retention
  return {
    idempotency_keys: (signal) => deleteOldKeys(db, signal),
    oidc_exchanges: (signal) => deleteOldExchanges(db, signal),
    pushes: (signal) => deleteOldPushes(db, signal),
    pull_requests: (signal) => deleteOldPullRequests(db, signal),
    cron_runs: (signal) => deleteOldRuns(db, signal),
    uploads: (signal) => deleteOldUploads(db, signal),
    domain_holds: (signal) => deleteOldHolds(db, signal),
    tasks: () => forgetOldTasks(db),
    nodes: () => deleteLostNodes(db),
    dns_updates: () => deleteOldUpdates(db),
    tokens: (signal) => forgetEndedTokens(db, signal),
    sign_ins: (signal) => deleteExpiredSignIns(db, signal),
    traffic: (signal) => deleteOldTraffic(db, signal),
    async events(signal) {
      const { made, dropped, deleted } = await maintainEventMonths(db, eventsMonths, signal)
      if (made + dropped > 0) log.info({ made, dropped }, 'the months of the event log')
      return deleted
    },
    runtime_lines: (signal) => deleteOldRuntimeLines(db, signal),
    log_lines: afterDays(logDays, (before, signal) => deleteOldLogLines(db, before, signal)),
    deployments:
      previews === null
        ? null
        : afterDays(previewDays, (before, signal) => removeOldDeployments(db, urls, { previews, before }, signal)),
    deleted_branches: afterHours(deletedBranchHours, (before, signal) =>
      removeClosedBranches(db, urls, before, signal),
    ),
    deliveries: afterDays(deliveryDays, (before, signal) => pruneDeliveries(db, before, signal)),
    mails: afterDays(deliveryDays, (before, signal) => deleteOldMails(db, before, signal)),
    webhook_surplus: (signal) => pruneSurplus(db, signal),
    failed_jobs: afterDays(failedJobDays, (before, signal) => forgetFailedJobs(db, before, signal)),
  }
}

// What arrives by the thousand each minute is cleaned up as often; the rest hourly.
const often = [
  'dns_updates',
  'runtime_lines',
  'idempotency_keys',
  'pushes',
  'cron_runs',
  'deleted_branches',
  'deliveries',
  'webhook_surplus',
  'sign_ins',
  'uploads',
]

export function tasksOf(deps: HousekeepingDeps): Task[] {
  const { db, urls, log, registry } = deps
  const removed = new Counter({
    name: 'berth_retention_removed_total',
    help: 'Rows that this process deleted because they are kept no longer, by kind.',
    labelNames: ['kind'],
    registers: [registry],
  })
  const removals = Object.entries(removalsOf(deps)).flatMap(([kind, remove]): Task[] => {
    if (!remove) return []
    const run = async (signal: AbortSignal) => {
      const count = await remove(signal)
      removed.inc({ kind }, count)
      if (count > 0) log.info({ kind, count }, 'deleted what is kept no longer')
    }
    return [{ name: `remove ${kind}`, everyMs: often.includes(kind) ? 10 * minuteMs : hourMs, run }]
  })
  /** Queues jobs again that were lost. */
  const requeues = (what: string, queue: (db: Database) => Promise<number>, message: string): Task => ({
    name: `queue forgotten ${what}`,
    everyMs: 10 * minuteMs,
    async run() {
      const queued = await queue(db)
      if (queued > 0) log.warn({ queued }, message)
    },
  })
  return [
    ...removals,
    { name: 'note stored bytes', everyMs: hourMs, run: () => recordStoredBytes(db) },
    {
      name: 'end unfinished uploads',
      everyMs: minuteMs,
      async run(signal) {
        const ended = await endUnfinished(db, urls, signal)
        if (ended > 0) log.info({ ended }, 'deployments whose files did not come in time')
      },
    },
    requeues('checks', requeueForgottenChecks, 'domains had no job for their next check'),
    requeues('crons', requeueForgottenCrons, 'crons had no job for their next run'),
    requeues('aliases', requeueOverdueAliases, 'zones had no job for the next lookup of their ALIAS records'),
    requeues('primaries', requeueOverdueZones, 'zones had no job for the next look at their primaries'),
    requeues(
      'checks of DS records',
      requeueForgottenSigning,
      'zones had no job for the next check of their DS records',
    ),
  ]
}

/** `others`: the tasks of engines. */
export function openHousekeeping(shared: HousekeepingDeps, closing: Closing, others: Task[]): Tasks {
  const tasks = startTasks(shared, [...tasksOf(shared), ...others])
  closing.add(() => tasks.stop())
  return tasks
}
