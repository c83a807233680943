// Compares this machine's clock with the database's, because it decides what is due or expired.
import type { Db } from '../platform/database/database.ts'
import { readNow } from './statements.ts'

const maxSkewMs = 10 * 60_000

const skewMs = (now: Date) => Math.abs(Date.now() - now.getTime())

/** Throws if the machine's clock is wrong: everything kept for days would look expired. `now`: the database's time. */
export function requireRightClock(now: Date): void {
  if (skewMs(now) <= maxSkewMs) return
  throw new Error(`the clock of this machine and that of the database are ${Math.round(skewMs(now) / 1000)} s apart`)
}

/** The same, cheap enough to call often: queries the database once, and again if the clock has jumped since. */
export function createClockCheck(db: Db): () => Promise<void> {
  /** The database's time when this process's monotonic clock was zero. */
  let originMs: number | null = null
  const now = () => new Date((originMs ?? 0) + performance.now())
  return async () => {
    if (originMs === null || skewMs(now()) > maxSkewMs) {
      const [row] = await readNow(db, {})
      originMs = row!.now.getTime() - performance.now()
    }
    requireRightClock(now())
  }
}
