// Checks whether a run whose connection broke has crashed; until that is known, no request is sent to it.
import { setTimeout as delay } from 'node:timers/promises'
import { isGone } from './health.ts'
import type { Instance } from './instance.ts'

export type Suspicion = {
  suspect(instance: Instance): void
  /** Settles when the check is done; null if there is none. */
  readonly pending: Promise<unknown> | null
}

// Longer than it takes on a busy machine until a crash is reported.
const noticeMs = 2_000
// Rate limit: servers that break connections on purpose are not probed each time.
const suspectEveryMs = 1_000

export function createSuspicion(isRunning: (instance: Instance) => boolean): Suspicion {
  let last: { instance: Instance; sinceMs: number } | null = null
  let pending: Promise<unknown> | null = null
  return {
    suspect(instance) {
      const nowMs = performance.now()
      const known = last?.instance === instance && nowMs - last.sinceMs < suspectEveryMs
      if (!isRunning(instance) || known) return
      last = { instance, sinceMs: nowMs }
      const gone = isGone(instance.address).then(async (gone) => {
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
