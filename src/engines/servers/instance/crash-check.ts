// Checks whether a run whose connection broke has crashed; until that is known, no request is sent to it.
import { setTimeout as delay } from 'node:timers/promises'
import { isGone } from './health.ts'
import type { Instance } from './instance.ts'

export type CrashCheck = {
  check(instance: Instance): void
  /** Settles when the check is done; null if there is none. */
  readonly pending: Promise<unknown> | null
}

// Longer than it takes on a busy machine until a crash is reported.
const noticeMs = 2_000
// Rate limit: servers that break connections on purpose are not probed each time.
const checkEveryMs = 1_000

export function createCrashCheck(isRunning: (instance: Instance) => boolean): CrashCheck {
  let last: { instance: Instance; sinceMs: number } | null = null
  let pending: Promise<unknown> | null = null
  return {
    check(instance) {
      const nowMs = performance.now()
      const known = last?.instance === instance && nowMs - last.sinceMs < checkEveryMs
      if (!isRunning(instance) || known) return
      last = { instance, sinceMs: nowMs }
      const gone = isGone(instance.connect).then(async (gone) => {
        if (gone) await delay(noticeMs, undefined, { ref: false })
      })
      const over = Promise.race([instance.ended, gone]).then(() => {
        if (pending === over) pending = null
      })
      pending = over
    },
    get pending() {
      return pending
    },
  }
}
