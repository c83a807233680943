// Delays the restarts of a failing server, longer each time, until it has run long enough.
import type { ServerLimits } from '../instance/limits.ts'

export type BackOff = {
  /** Counts a failure after `upMs` of uptime. Returns the delay before the next start. */
  failed(upMs?: number): number
  /** The remaining delay before the next start. */
  readonly waitMs: number
  /** Whether the failures were so long ago that they no longer matter. */
  readonly isOver: boolean
}

export function createBackOff({
  restartDelaysMs: delaysMs,
  stableMs,
}: Pick<ServerLimits, 'restartDelaysMs' | 'stableMs'>): BackOff {
  let failures = 0
  let notBeforeMs = 0
  return {
    failed(upMs) {
      if (upMs !== undefined && upMs >= stableMs) failures = 0
      const delayMs = delaysMs[Math.min(failures++, delaysMs.length - 1)]!
      notBeforeMs = performance.now() + delayMs
      return delayMs
    },
    get waitMs() {
      return notBeforeMs - performance.now()
    },
    get isOver() {
      return performance.now() > notBeforeMs + stableMs
    },
  }
}
