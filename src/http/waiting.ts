// `?wait=`: holds an answer until a resource settles, woken by the database and not by asking it again and again.
import type { Notifications } from '../notifications.ts'

/** Reads until `settled` or the time is over, and returns what was read last. */
export async function waitUntil<T>(
  notifications: Notifications,
  accountId: string,
  subject: string,
  waitSeconds: number | undefined,
  read: () => Promise<T>,
  settled: (value: T) => boolean,
): Promise<T> {
  const deadline = Date.now() + (waitSeconds ?? 0) * 1000
  for (;;) {
    const left = deadline - Date.now()
    // Listening starts before reading: a change between the two would be slept through otherwise.
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
