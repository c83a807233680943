// The clock of this machine, held against that of the database: what is due, over or old is told by it.
import type { Db } from '../platform/database/database.ts'
import { readNow } from './statements.ts'

const maxAstrayMs = 10 * 60_000

const astrayMs = (now: Date) => Math.abs(Date.now() - now.getTime())

/** Throws where the machine's clock is wrong: by it, what is kept for days would be over at once. `now`: the database's. */
export function requireRightClock(now: Date): void {
  if (astrayMs(now) <= maxAstrayMs) return
  throw new Error(`the clock of this machine and that of the database are ${Math.round(astrayMs(now) / 1000)} s apart`)
}

/** The same, often: the database is asked once, and again where the clock has jumped since. */
export function createClockCheck(db: Db): () => Promise<void> {
  /** The database's time when this process began to count. */
  let beganMs: number | null = null
  const now = () => new Date((beganMs ?? 0) + performance.now())
  return async () => {
    if (beganMs === null || astrayMs(now()) > maxAstrayMs) {
      const [row] = await readNow(db, {})
      beganMs = row!.now.getTime() - performance.now()
    }
    requireRightClock(now())
  }
}
