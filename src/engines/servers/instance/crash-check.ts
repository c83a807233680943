// Checks whether an instance whose connection broke has crashed, so that requests wait until that is known.
import { setTimeout as delay } from 'node:timers/promises'
import { isGone } from './health.ts'
import type { Instance } from './instance.ts'

export type CrashCheck = {
  check(instance: Instance): void
  /** Settles when the check in progress is done; null if there is none. */
  readonly pending: Promise<unknown> | null
}

// Longer than a busy machine takes to report a crash.
const reportDelayMs = 2_000
// Limits probes of servers that break connections on purpose.
const checkIntervalMs = 1_000

export function createCrashCheck(isRunning: (instance: Instance) => boolean): CrashCheck {
  let last: { instance: Instance; sinceMs: number } | null = null
  let pending: Promise<unknown> | null = null
  return {
    check(instance) {
      const nowMs = performance.now()
      const isRecent = last?.instance === instance && nowMs - last.sinceMs < checkIntervalMs
      if (!isRunning(instance) || isRecent) return
      last = { instance, sinceMs: nowMs }
      const gone = isGone(instance.connect).then(async (gone) => {
        if (gone) await delay(reportDelayMs, undefined, { ref: false })
      })
      const done = Promise.race([instance.ended, gone]).then(() => {
        if (pending === done) pending = null
      })
      pending = done
    },
    get pending() {
      return pending
    },
  }
}
