// When a server that has failed may start again: later each time, until a run was sound for long enough.
import type { ServerLimits } from '../instance/limits.ts'

export type BackOff = {
  /** Counts a failure, of a run that was up for so long; returns how long the next start has to wait. */
  failed(upMs?: number): number
  /** How long the next start still has to wait. */
  readonly waitMs: number
  /** The failures were long ago. */
  readonly isOver: boolean
}

export function createBackOff({
  restartDelaysMs: table,
  soundMs,
}: Pick<ServerLimits, 'restartDelaysMs' | 'soundMs'>): BackOff {
  let failures = 0
  let notBeforeMs = 0
  return {
    failed(upMs) {
      if (upMs !== undefined && upMs >= soundMs) failures = 0
      const delayMs = table[Math.min(failures++, table.length - 1)]!
      notBeforeMs = performance.now() + delayMs
      return delayMs
    },
    get waitMs() {
      return notBeforeMs - performance.now()
    },
    get isOver() {
      return performance.now() > notBeforeMs + soundMs
    },
  }
}
