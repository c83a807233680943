// One-time passwords of an authenticator app (TOTP, RFC 6238), required after the password.
import { Secret, TOTP } from 'otpauth'
import type { User } from '../../../generated/client.ts'
import type { Database, Db } from '../../../platform/database/database.ts'
import { Fault, invalidField } from '../../../platform/errors.ts'
import { placeOf, type Vault } from '../../../platform/secrets/secrets.ts'
import { lockSession, type SessionWithUser } from '../sessions.ts'
import { verifyKnownBrowser } from './known-browser.ts'
import { passwordDigest } from './passwords.ts'
import { newRecoveryCodes, useRecoveryCode } from './recovery-codes.ts'
import { consumeStep, findStep } from './steps.ts'

const secretBytes = 20
// One step either way, because clocks differ and typing takes time.
const window = 1

function totpOf(secret: Secret, label = ''): TOTP {
  return new TOTP({ issuer: 'Berth', label, secret })
}

function openSecret(vault: Vault, { id, totpSecret }: User): Secret {
  return Secret.fromBase32(vault.open(totpSecret!, placeOf.totp(id)).toString())
}

/** The time step of a code; null if no step near now matches. */
function stepOf(secret: Secret, code: string): bigint | null {
  const token = code.replace(/\s/g, '')
  const timestamp = Date.now()
  const delta = /^\d{6}$/.test(token) ? totpOf(secret).validate({ token, timestamp, window }) : null
  return delta === null ? null : BigInt(TOTP.counter({ timestamp }) + delta)
}

/** Creates a secret, which takes effect once a first code confirms it. */
export async function setUpTotp(db: Db, vault: Vault, user: User): Promise<{ secret: string; uri: string }> {
  const secret = new Secret({ size: secretBytes })
  const totpSecret = Uint8Array.from(vault.seal(secret.base32, placeOf.totp(user.id)))
  const where = { id: user.id, totpConfirmedAt: null }
  const { count } = await db.user.updateMany({ where, data: { totpSecret, totpLastStep: null } })
  if (count === 0) throw new Fault('totp_exists')
  return { secret: secret.base32, uri: totpOf(secret, user.email).toString() }
}

/** Turns TOTP on: from now on, the password alone does not sign the person in. */
export async function confirmTotp(
  db: Database,
  vault: Vault,
  session: SessionWithUser,
  code: string,
): Promise<string[]> {
  const { user } = session
  if (user.totpConfirmedAt) throw new Fault('totp_exists')
  if (!user.totpSecret) throw new Fault('not_found', 'Start with `POST /auth/totp/setup`.')
  const step = stepOf(openSecret(vault, user), code)
  if (step === null) throw invalidField('#/code', 'wrong', 'does not match; check the clock of your device')
  return db.$transaction(async (db: Db) => {
    await lockSession(db, session)
    // Confirms only the secret that the code matched: another setup may have replaced it.
    const where = { id: user.id, totpConfirmedAt: null, totpSecret: user.totpSecret }
    const data = { totpConfirmedAt: new Date(), totpLastStep: step }
    if ((await db.user.updateMany({ where, data })).count === 0) throw new Fault('totp_exists')
    return newRecoveryCodes(db, user.id)
  })
}

/** Whether the code is a valid one-time password or recovery code of the person. Each is accepted once. */
async function acceptCode(db: Db, vault: Vault, user: User, code: string): Promise<boolean> {
  if (!user.totpSecret || !user.totpConfirmedAt) return false
  if (!/^[\d\s]*$/.test(code)) return useRecoveryCode(db, user.id, code)
  const step = stepOf(openSecret(vault, user), code)
  if (step === null) return false
  const isLater = [{ totpLastStep: null }, { totpLastStep: { lt: step } }]
  const where = { id: user.id, totpConfirmedAt: { not: null }, OR: isLater }
  return (await db.user.updateMany({ where, data: { totpLastStep: step } })).count === 1
}

export type CodeAttempt = {
  code: string
  /** The secret of the step that the password started. */
  step: string | null
  /** The browser's cookie from an earlier sign-in. */
  knownCookie: string | null
  checkAttempts(userId: string, browser: string | null): Promise<void>
}

/** Completes a sign-in with a code. A wrong code leaves the step open, as often as `checkAttempts` allows. */
export async function completeWithCode(
  db: Db,
  vault: Vault,
  { code, step, knownCookie, checkAttempts }: CodeAttempt,
): Promise<User> {
  const { userId, password } = await findStep(db, 'totp', step)
  const user = await db.user.findUnique({ where: { id: userId } })
  if (!user || passwordDigest(user) !== password) throw new Fault('sign_in_step_over')
  await checkAttempts(userId, verifyKnownBrowser(user, knownCookie))
  if (!(await acceptCode(db, vault, user, code))) throw new Fault('sign_in_failed')
  await consumeStep(db, 'totp', step)
  return user
}

export async function renewRecoveryCodes(db: Database, session: SessionWithUser): Promise<string[]> {
  const { id, totpConfirmedAt } = session.user
  if (!totpConfirmedAt) throw new Fault('not_found', 'Start with `POST /auth/totp/setup`.')
  return db.$transaction(async (db: Db) => {
    await lockSession(db, session)
    return newRecoveryCodes(db, id)
  })
}

export async function removeTotp(db: Database, session: SessionWithUser): Promise<void> {
  const { userId } = session
  await db.$transaction(async (db: Db) => {
    await lockSession(db, session)
    const none = { totpSecret: null, totpConfirmedAt: null, totpLastStep: null }
    await db.user.update({ where: { id: userId }, data: none })
    await db.recoveryCode.deleteMany({ where: { userId } })
  })
}
