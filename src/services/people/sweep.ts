// Deletes expired sessions, links, invitations, sign-in steps, device sign-ins and console tokens.
import { deleteInBatches } from '../../platform/batches.ts'
import type { Db } from '../../platform/database/database.ts'
import { idleMs } from './sessions.ts'

// For this long, a console learns that its token has expired rather than that it does not exist.
const expiredTokenMs = 60 * 60_000

/** Deletes expired and used rows and returns their number. */
export async function deleteExpiredSignIns(db: Db, signal?: AbortSignal): Promise<number> {
  const now = new Date()
  const ago = (ms: number) => new Date(now.getTime() - ms)
  const ended = { OR: [{ expiresAt: { lt: now } }, { lastSeenAt: { lt: ago(idleMs) } }] }
  const used = { OR: [{ expiresAt: { lt: now } }, { usedAt: { not: null } }] }
  const settled = { OR: [{ expiresAt: { lt: now } }, { acceptedAt: { not: null } }] }
  const consoleTokens = { sessionId: { not: null }, expiresAt: { lt: ago(expiredTokenMs) } }
  const removals = [
    (limit: number) => db.session.deleteMany({ where: ended, limit }),
    (limit: number) => db.signInLink.deleteMany({ where: used, limit }),
    (limit: number) => db.invitation.deleteMany({ where: settled, limit }),
    (limit: number) => db.signInStep.deleteMany({ where: { expiresAt: { lt: now } }, limit }),
    (limit: number) => db.deviceLogin.deleteMany({ where: { expiresAt: { lt: now } }, limit }),
    (limit: number) => db.token.deleteMany({ where: consoleTokens, limit }),
  ]
  let count = 0
  for (const remove of removals) count += await deleteInBatches(signal, remove)
  return count
}
