// Tells the logs of builds that have to wait what they wait for. Woken when a build is queued; an idle platform is not asked.
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { announceWaiting, noticeableMs } from '../../../services/deployments/index.ts'

// Later than that only a worker that has just started finds a build without its line.
const sinceMs = 60_000

/** Returns what ends it. */
export function announceWaits(deps: { db: Database; notifications: Notifications; log: Logger }): () => Promise<void> {
  const { db, notifications, log } = deps
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  /** When the newest build that is known of has waited for long enough. */
  let dueAt = 0
  let all = true

  async function look(): Promise<void> {
    const since = all ? null : sinceMs
    all = false
    await announceWaiting(db, since).catch((err) => log.warn({ err }, 'the first lines of builds that wait'))
    timer = undefined
    if (Date.now() < dueAt) schedule()
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      looking = look()
    }, noticeableMs)
  }

  function wake(): void {
    dueAt = Date.now() + noticeableMs
    schedule()
  }

  const off = [
    notifications.on('job', (kind) => kind === 'build' && wake()),
    notifications.on('reconnected', () => {
      all = true
      wake()
    }),
  ]
  wake()
  return async () => {
    for (const stop of off) stop()
    dueAt = 0
    clearTimeout(timer)
    await looking
  }
}
