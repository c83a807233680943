// Removes what has ended: sessions, links, invitations, steps of sign-ins, programs that wait, and tokens of consoles.
import { deleteInBatches } from '../../platform/batches.ts'
import type { Db } from '../../platform/database/database.ts'
import { idleMs } from './sessions.ts'

// So long a console is told that its token has expired, and not that there is none.
const keptTokenMs = 60 * 60_000

/** Deletes all of these that are good for nothing any more, and tells how many. */
export async function forgetEndedSignIns(db: Db, signal?: AbortSignal): Promise<number> {
  const now = new Date()
  const ago = (ms: number) => new Date(now.getTime() - ms)
  const ended = { OR: [{ expiresAt: { lt: now } }, { lastSeenAt: { lt: ago(idleMs) } }] }
  const used = { OR: [{ expiresAt: { lt: now } }, { usedAt: { not: null } }] }
  const settled = { OR: [{ expiresAt: { lt: now } }, { acceptedAt: { not: null } }] }
  const consoles = { sessionId: { not: null }, expiresAt: { lt: ago(keptTokenMs) } }
  const removals = [
    (limit: number) => db.session.deleteMany({ where: ended, limit }),
    (limit: number) => db.signInLink.deleteMany({ where: used, limit }),
    (limit: number) => db.invitation.deleteMany({ where: settled, limit }),
    (limit: number) => db.signInStep.deleteMany({ where: { expiresAt: { lt: now } }, limit }),
    (limit: number) => db.deviceLogin.deleteMany({ where: { expiresAt: { lt: now } }, limit }),
    (limit: number) => db.token.deleteMany({ where: consoles, limit }),
  ]
  let count = 0
  for (const remove of removals) count += await deleteInBatches(signal, remove)
  return count
}
