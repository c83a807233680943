// Watches a running server: if it stops responding, edges avoid it, and then it is restarted.
import type { Instance } from '../instance/instance.ts'
import type { ServerLimits } from '../instance/limits.ts'

/** null: it responds again; `short`: it failed one probe and may just be busy; a reason: it has to be restarted. */
export type LivenessChange = null | 'short' | { reason: string }

/**
 * Probes one at a time, and not while the server sends other data: a program that handles one request after the other
 * can't respond to a probe at the same time. Any response counts, even an error.
 */
export function watchLiveness(
  instance: Pick<Instance, 'responds' | 'receivedBytes' | 'ended'>,
  { everyMs, answerMs, failures: maxFailures }: ServerLimits['liveness'],
  onChange: (silence: LivenessChange) => void,
): void {
  let failures = 0
  let received = instance.receivedBytes
  let over = false
  let timer = setTimeout(probe, everyMs)
  timer.unref()

  async function probe(): Promise<void> {
    const isAlive = hasSent() || (await instance.responds(answerMs)) || hasSent()
    if (over) return
    if (isAlive !== (failures === 0)) onChange(isAlive ? null : 'short')
    failures = isAlive ? 0 : failures + 1
    if (failures >= maxFailures)
      return onChange({ reason: `gave no answer ${maxFailures} times, each within ${answerMs / 1000} s` })
    timer = setTimeout(probe, everyMs)
    timer.unref()
  }

  function hasSent(): boolean {
    const before = received
    received = instance.receivedBytes
    return received > before
  }

  void instance.ended.then(() => {
    over = true
    clearTimeout(timer)
  })
}
