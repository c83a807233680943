// Sessions of signed-in people. The browser has the secret in a cookie; we store its hash.
import type { Session, User } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { hashToken, newSecret } from '../../platform/secrets/secrets.ts'
import { append } from '../events/index.ts'
import { lockUser } from './sign-in-statements.ts'

const dayMs = 24 * 60 * 60_000
export const idleMs = 7 * dayMs
const lifeMs = 30 * dayMs
// Limits updates of `lastSeenAt` to one per minute.
const lastSeenResolutionMs = 60_000
const maxUserAgent = 300
// The size of the list, so that repeated sign-ins add no endless rows and every session can be ended.
const maxSessions = 100

export type SignInMethod = 'link' | 'passkey' | 'password' | 'oidc'
export type SignIn = { userId: string; method: SignInMethod; userAgent: string; address: string }
export type SessionWithUser = Session & { user: User }

export function viewSession(row: Session) {
  return {
    id: row.id,
    method: row.method as SignInMethod,
    userAgent: row.userAgent,
    address: row.address,
    createdAt: row.createdAt.toISOString(),
    lastSeenAt: row.lastSeenAt.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
  }
}

/** Signs a person in with a new session and a new secret, and appends an event to each of their accounts. */
export async function openSession(db: Db, signIn: SignIn): Promise<{ secret: string; session: SessionWithUser }> {
  return inTransaction(db, async (db) => {
    const secret = newSecret()
    const now = new Date()
    const session = await db.session.create({
      data: {
        ...signIn,
        userAgent: signIn.userAgent.slice(0, maxUserAgent),
        id: newId('ses'),
        hash: Uint8Array.from(hashToken(secret)),
        createdAt: now,
        lastSeenAt: now,
        expiresAt: new Date(now.getTime() + lifeMs),
      },
      include: { user: true },
    })
    await endOldest(db, signIn.userId)
    const { id: subject, email, name } = session.user
    // Without the IP address: the whole account can read events, and the address is private.
    const { address: _address, lastSeenAt: _seen, ...shown } = viewSession(session)
    const data = { ...shown, userId: subject, email, name }
    const memberships = await db.membership.findMany({ where: { userId: subject }, select: { accountId: true } })
    await append(
      db,
      memberships.map(({ accountId }) => {
        return { accountId, projectId: null, type: 'session.created', actor: subject, subject, data } as const
      }),
    )
    return { secret, session }
  })
}

async function endOldest(db: Db, userId: string): Promise<void> {
  const newestFirst = { where: { userId }, orderBy: { id: 'desc' }, select: { id: true } } as const
  const beyond = await db.session.findFirst({ ...newestFirst, skip: maxSessions })
  if (beyond) await db.session.deleteMany({ where: { userId, id: { lte: beyond.id } } })
}

const live = (now: Date) => ({ expiresAt: { gt: now }, lastSeenAt: { gt: new Date(now.getTime() - idleMs) } })

/** Finds the live session of a cookie. */
export async function findSession(db: Db, secret: string): Promise<SessionWithUser | null> {
  const now = new Date()
  const hash = Uint8Array.from(hashToken(secret))
  const found = await db.session.findFirst({ where: { hash, ...live(now) }, include: { user: true } })
  if (!found) return null
  if (now.getTime() - found.lastSeenAt.getTime() < lastSeenResolutionMs) return found
  await db.session.updateMany({ where: { id: found.id }, data: { lastSeenAt: now } })
  return { ...found, lastSeenAt: now }
}

/** Locks the person until the transaction ends. Throws if the session has ended since: it must change nothing more. */
export async function lockSession(db: Db, { id, userId }: Pick<Session, 'id' | 'userId'>): Promise<void> {
  await lockUser(db, { id: userId })
  if ((await db.session.count({ where: { id, ...live(new Date()) } })) === 0) throw new Fault('not_signed_in')
}

/** The live sessions of a person, newest first. */
export async function listSessions(db: Db, userId: string): Promise<Session[]> {
  return db.session.findMany({ where: { userId, ...live(new Date()) }, orderBy: { id: 'desc' }, take: maxSessions })
}

/** Ends a session of the person and revokes its console tokens, on every replica. */
export async function endSession(db: Db, userId: string, id: string): Promise<void> {
  const { count } = await db.session.deleteMany({ where: { id, userId } })
  if (count === 0) throw new Fault('not_found', `There is no session ${id}.`)
}

/** Ends every session of a person except one, since a new password must sign out intruders. */
export async function endOtherSessions(db: Db, userId: string, currentId: string): Promise<number> {
  return (await db.session.deleteMany({ where: { userId, id: { not: currentId } } })).count
}
