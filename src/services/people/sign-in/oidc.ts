// Sign-in with an identity provider: finds or creates the person of an identity.
import { Value } from '@sinclair/typebox/value'
import type { User } from '../../../generated/client.ts'
import { type Database, type Db, violation } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { Identity } from '../../../platform/secrets/identity-provider.ts'
import { Email, PersonName } from '../../../schemas/people.ts'
import { pending } from '../invitations.ts'
import { revokeGrantsOf } from '../members.ts'
import { createUser, findUserByEmail, normalEmail, releaseEmail } from '../users.ts'

/**
 * Finds the person by issuer and subject, or by the email that the provider has verified. Otherwise creates a person if
 * that email is invited or anybody may sign up. Emails that the provider has not verified are ignored.
 */
export async function findOrAdmitUser(db: Database, identity: Identity, allowSignup: boolean): Promise<User> {
  // Neither part contains a space.
  const oidcSubject = `${identity.issuer} ${identity.subject}`
  const linked = await db.user.findUnique({ where: { oidcSubject } })
  if (linked) return linked
  // Checked before lower-casing, which turns some other characters into ASCII, such as the Kelvin sign into k.
  if (!Value.Check(Email, identity.verifiedEmail)) throw new Fault('not_invited')
  const email = normalEmail(identity.verifiedEmail)
  try {
    return await db.$transaction(async (db: Db) => {
      const known = await findUserByEmail(db, email)
      // Somebody else claimed the email without proving it, which would lock its owner out.
      const isSquatted = known !== null && known.oidcSubject !== null && known.emailProvedAt === null
      if (isSquatted) await releaseEmail(db, known)
      return known && !isSquatted
        ? link(db, known, oidcSubject)
        : admit(db, { ...identity, email, oidcSubject, allowSignup })
    })
  } catch (error) {
    // A concurrent sign-in created the person first; the next attempt finds them.
    if (error instanceof Fault && error.code !== 'validation_failed') throw error
    if (error instanceof Fault || violation(error)) throw new Fault('sign_in_failed', undefined, { cause: error })
    throw error
  }
}

/**
 * Links the identity to the person. If the email is unproved, the inviter may have opened the invitation in the
 * person's name, so every earlier sign-in method and everything created through it is revoked.
 */
async function link(db: Db, { id, email, emailProvedAt }: User, oidcSubject: string): Promise<User> {
  const { count } = await db.user.updateMany({ where: { id, email, oidcSubject: null }, data: { oidcSubject } })
  if (count === 0) throw new Fault('sign_in_failed')
  if (emailProvedAt) return db.user.findUniqueOrThrow({ where: { id } })
  const where = { userId: id }
  await db.session.deleteMany({ where })
  await db.passkey.deleteMany({ where })
  await db.recoveryCode.deleteMany({ where })
  await db.signInLink.deleteMany({ where })
  await revokeGrantsOf(db, id)
  const none = { passwordHash: null, totpSecret: null, totpConfirmedAt: null, totpLastStep: null }
  return db.user.update({ where: { id }, data: { ...none, emailProvedAt: new Date() } })
}

type Newcomer = { email: string; name: string | null; oidcSubject: string; allowSignup: boolean }

/** Creates a person without an account; they accept each invitation themselves. */
async function admit(db: Db, { email, name, oidcSubject, allowSignup }: Newcomer): Promise<User> {
  const isInvited = (await db.invitation.count({ where: { email, ...pending() } })) > 0
  if (!isInvited && !(allowSignup && Value.Check(Email, email))) throw new Fault('not_invited')
  // People choose their name at the provider, so it may not fit our schema.
  const validName = Value.Check(PersonName, name) ? name : undefined
  const { id } = await createUser(db, { email, name: validName, proved: true })
  return db.user.update({ where: { id }, data: { oidcSubject } })
}
