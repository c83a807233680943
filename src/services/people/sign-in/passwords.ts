// Sign-in by password, and its change.
import { hash } from 'node:crypto'
import type { User } from '../../../generated/client.ts'
import type { Database, Db } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { PasswordHasher } from '../../../platform/secrets/password-hash.ts'
import { endOtherSessions, holdSession, openSession, type SessionWithUser, type SignIn } from '../sessions.ts'
import { lockUser } from '../sign-in-statements.ts'
import { findUserByEmail } from '../users.ts'
import { knownBrowserOf } from './known-browser.ts'
import { refuseWeakPassword } from './password-rules.ts'

export type PasswordTry = {
  email: string
  password: string
  /** What the browser kept of an earlier sign-in. */
  kept: string | null
  /** Throws if there were too many tries: by the browser of that name, or by all that are not known. */
  admit(browser: string | null): Promise<void>
}

/** Whose password it is. Nobody hears whether there is such a person: not by the answer, nor by the time it takes. */
export async function checkPassword(
  db: Database,
  hasher: PasswordHasher,
  { email, password, kept, admit }: PasswordTry,
): Promise<User> {
  const user = await findUserByEmail(db, email)
  const passwordHash = user?.passwordHash ?? null
  const browser = knownBrowserOf(user, kept)
  await admit(browser)
  // A flood from elsewhere fills the queue, so whoever is known here goes first.
  if (!(await hasher.verify(password, passwordHash, browser !== null)) || !user) throw new Fault('sign_in_failed')
  if (!hasher.isOutdated(user.passwordHash!)) return user
  const renewed = await hasher.hash(password)
  await db.user.updateMany({ where: { id: user.id, passwordHash }, data: { passwordHash: renewed } })
  return { ...user, passwordHash: renewed }
}

/** Tells one password of a person from the next, and nothing about either. */
export function passwordMark({ passwordHash }: User): string {
  return hash('sha256', passwordHash ?? '', 'base64url')
}

/** Opens a session, unless the password was changed since it was found right: others were to be out by that. */
export async function openByPassword(
  db: Database,
  { id, passwordHash }: User,
  from: Omit<SignIn, 'userId' | 'method'>,
) {
  return db.$transaction(async (db: Db) => {
    await lockUser(db, { id })
    if ((await db.user.count({ where: { id, passwordHash } })) === 0) throw new Fault('sign_in_failed')
    return openSession(db, { userId: id, method: 'password', ...from })
  })
}

/** Everybody else who is signed in as the person is out. */
export async function setPassword(
  db: Database,
  hasher: PasswordHasher,
  session: SessionWithUser,
  password: string,
): Promise<User> {
  const { id, userId, user } = session
  refuseWeakPassword(password, user.email)
  const passwordHash = await hasher.hash(password)
  return db.$transaction(async (db: Db) => {
    await holdSession(db, session)
    const changed = await db.user.update({ where: { id: userId }, data: { passwordHash } })
    await endOtherSessions(db, userId, id)
    return changed
  })
}
