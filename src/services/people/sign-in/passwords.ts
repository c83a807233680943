// Sign-in by password, and password changes.
import { hash } from 'node:crypto'
import type { User } from '../../../generated/client.ts'
import type { Database, Db } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { PasswordHasher } from '../../../platform/secrets/password-hash.ts'
import { endOtherSessions, lockSession, openSession, type SessionWithUser, type SignIn } from '../sessions.ts'
import { lockUser } from '../sign-in-statements.ts'
import { findUserByEmail } from '../users.ts'
import { verifyKnownBrowser } from './known-browser.ts'
import { refuseWeakPassword } from './password-rules.ts'

export type PasswordAttempt = {
  email: string
  password: string
  /** The browser's cookie from an earlier sign-in. */
  knownCookie: string | null
  /** Throws after too many attempts by this known browser, or by all unknown ones together. */
  checkAttempts(browser: string | null): Promise<void>
}

/** Finds the person by email and password. Neither the response nor its timing reveals whether the person exists. */
export async function checkPassword(
  db: Database,
  hasher: PasswordHasher,
  { email, password, knownCookie, checkAttempts }: PasswordAttempt,
): Promise<User> {
  const user = await findUserByEmail(db, email)
  const passwordHash = user?.passwordHash ?? null
  const browser = verifyKnownBrowser(user, knownCookie)
  await checkAttempts(browser)
  // Known browsers skip the queue, which a flood from elsewhere may fill.
  if (!(await hasher.verify(password, passwordHash, browser !== null)) || !user) throw new Fault('sign_in_failed')
  if (!hasher.isOutdated(user.passwordHash!)) return user
  const renewed = await hasher.hash(password)
  await db.user.updateMany({ where: { id: user.id, passwordHash }, data: { passwordHash: renewed } })
  return { ...user, passwordHash: renewed }
}

/** Changes with the password and reveals nothing about it. */
export function passwordDigest({ passwordHash }: User): string {
  return hash('sha256', passwordHash ?? '', 'base64url')
}

/** Opens a session unless the password has changed since it was checked: a change signs everybody else out. */
export async function openPasswordSession(
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

/** Sets the password and ends the person's other sessions. */
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
    await lockSession(db, session)
    const changed = await db.user.update({ where: { id: userId }, data: { passwordHash } })
    await endOtherSessions(db, userId, id)
    return changed
  })
}
