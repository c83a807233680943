// How long a slice of load lasts: its time, and on a busy machine until the first response, without which it says nothing.
import type { EventEmitter } from 'node:events'

/** After this, no response is coming. */
export const maxSliceSeconds = 60

/** Stops a run of autocannon, whose `duration` is the time plus `maxSliceSeconds`. */
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
