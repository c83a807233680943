// `?wait=`: delays a response until a resource settles, woken by database notifications instead of polling.
import type { Notifications } from '../../platform/notifications.ts'

export type Wait<T> = {
  accountId: string
  /** Whose events wake the reader. */
  subject: string
  waitSeconds: number | undefined
  read(): Promise<T>
  settled(value: T): boolean
}

/** Reads until `settled` or the time is over, and returns what was read last. */
export async function waitUntil<T>(notifications: Notifications, wait: Wait<T>): Promise<T> {
  const { accountId, subject, waitSeconds, read, settled } = wait
  const deadline = Date.now() + (waitSeconds ?? 0) * 1000
  for (;;) {
    const left = deadline - Date.now()
    // Listening starts before reading, so that a change between the two is not missed.
    const next = left > 0 ? notifications.nextEvent(accountId, subject, left) : null
    try {
      const value = await read()
      if (!next || settled(value)) return value
      await next.done
      // Without notifications there is nothing to wait for.
      if (!notifications.connected) return await read()
    } finally {
      next?.cancel()
    }
  }
}
