// Housekeeping: what the worker role does from time to time, as periodic tasks.
import { startTasks, type Task } from '../jobs/tasks.ts'
import { requeueForgottenChecks } from '../services/domains/checks.ts'
import { forgetOldKeys } from '../services/idempotency/keys.ts'
import { forgetOldPushes } from '../services/pushes/pushes.ts'
import type { Closing } from './closing.ts'
import type { Shared } from './shared.ts'

const minuteMs = 60_000

function tasksOf({ db, log }: Shared): Task[] {
  return [
    { name: 'forget idempotency keys', everyMs: 10 * minuteMs, run: () => forgetOldKeys(db) },
    { name: 'forget pushes', everyMs: 10 * minuteMs, run: () => forgetOldPushes(db) },
    {
      name: 'queue forgotten checks',
      everyMs: 10 * minuteMs,
      async run() {
        const queued = await requeueForgottenChecks(db)
        if (queued > 0) log.warn({ queued }, 'domains had no job for their next check')
      },
    },
  ]
}

export function openHousekeeping(shared: Shared, closing: Closing): void {
  const tasks = startTasks(shared, tasksOf(shared))
  closing.add(() => tasks.stop())
}
