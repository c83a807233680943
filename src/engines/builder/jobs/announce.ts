// Writes into the logs of queued builds what they wait for. Only runs after builds were queued.
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { announceWaiting, noticeableMs } from '../../../services/deployments/index.ts'

// Older builds lack their line only if no worker was running, so a new worker checks all of them.
const sinceMs = 60_000

/** Returns a function that stops it. */
export function announceWaits(deps: { db: Database; notifications: Notifications; log: Logger }): () => Promise<void> {
  const { db, notifications, log } = deps
  let timer: NodeJS.Timeout | undefined
  let announcing = Promise.resolve()
  /** When the newest known build has waited long enough for a line. */
  let dueAt = 0
  let isFirst = true

  async function announce(): Promise<void> {
    const since = isFirst ? null : sinceMs
    isFirst = false
    await announceWaiting(db, since).catch((err) => log.warn({ err }, 'the first lines of builds that wait'))
    timer = undefined
    if (Date.now() < dueAt) schedule()
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      announcing = announce()
    }, noticeableMs)
  }

  function wake(): void {
    dueAt = Date.now() + noticeableMs
    schedule()
  }

  const off = [
    notifications.on('job', (kind) => kind === 'build' && wake()),
    notifications.on('reconnected', () => {
      isFirst = true
      wake()
    }),
  ]
  wake()
  return async () => {
    for (const stop of off) stop()
    dueAt = 0
    clearTimeout(timer)
    await announcing
  }
}
