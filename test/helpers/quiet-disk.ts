// Before something is timed: what was written last costs it nothing.
import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'

export async function quietDisk(): Promise<void> {
  // The platform still saves its cache.
  await delay(5_000)
  execFileSync('sync')
}
