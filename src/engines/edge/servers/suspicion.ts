// Whether a run whose connection broke has crashed: its end is noticed a moment later, and until then nobody is sent there.
import { setTimeout as delay } from 'node:timers/promises'
import { isGone } from './health.ts'
import type { Instance } from './instance.ts'

export type Suspicion = {
  suspect(instance: Instance): void
  /** Settles when it is known; null where nothing is suspected. */
  readonly pending: Promise<unknown> | null
}

// Longer than the way from a crash to its notice on a busy machine.
const noticeMs = 2_000
// Seldom, so that servers that break connections on purpose are not asked for nothing.
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
