// Watches a server that is up: one that no longer answers leaves the choice of the edges, and is then given up.
import type { Instance } from '../instance/instance.ts'
import type { ServerLimits } from '../instance/limits.ts'

/** Of a server: null, it answers again; short, it has not answered one probe, and may be busy; else it is given up. */
export type Silence = null | 'short' | { reason: string }

/**
 * One probe at a time, and none while the server sends something of its own accord: a program that works on one request
 * after the other cannot answer a probe as well. Any answer counts, also an error of the server. Ends with the server, or
 * when it is given up.
 */
export function watchLiveness(
  instance: Pick<Instance, 'answers' | 'receivedBytes' | 'ended'>,
  { everyMs, answerMs, failures: most }: ServerLimits['liveness'],
  tell: (silence: Silence) => void,
): void {
  let failures = 0
  let received = instance.receivedBytes
  let over = false
  let timer = setTimeout(look, everyMs)
  timer.unref()

  async function look(): Promise<void> {
    const isAlive = hasSent() || (await instance.answers(answerMs)) || hasSent()
    if (over) return
    if (isAlive !== (failures === 0)) tell(isAlive ? null : 'short')
    failures = isAlive ? 0 : failures + 1
    if (failures >= most) return tell({ reason: `gave no answer ${most} times, each within ${answerMs / 1000} s` })
    timer = setTimeout(look, everyMs)
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
