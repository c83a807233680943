// Flushes the disk before a measurement, so that earlier writes don't slow it down.
import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

/** Waits first, because the platform is still writing its cache. */
export async function quietDisk(waitMs = 5_000): Promise<void> {
  await delay(waitMs)
  execFileSync('sync')
}
