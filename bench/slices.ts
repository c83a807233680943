// The duration of a slice of load: its nominal time, extended on a busy machine until the first response.
import type { EventEmitter } from 'node:events'

/** After this time, no response is coming. */
export const maxSliceSeconds = 60

/** Stops a run of autocannon, whose `duration` is its time plus `maxSliceSeconds`. */
export function stopAfter(run: EventEmitter & { stop(): void }, ms: number, isAnswered: () => boolean): void {
  let isOver = false
  const check = () => {
    if (isOver && isAnswered()) run.stop()
  }
  run.on('response', check)
  setTimeout(() => {
    isOver = true
    check()
  }, ms)
}
