// Before something is timed: what was written last costs it nothing.
import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

/** Waits first, because the platform still saves its cache. */
export async function quietDisk(waitMs = 5_000): Promise<void> {
  await delay(waitMs)
  execFileSync('sync')
}
