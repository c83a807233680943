// Sign-in by an identity provider: which person an identity is.
import { Value } from '@sinclair/typebox/value'
import type { User } from '../../../generated/client.ts'
import { type Database, type Db, violation } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { Identity } from '../../../platform/secrets/identity-provider.ts'
import { Email, PersonName } from '../../../schemas/people.ts'
import { open } from '../invitations.ts'
import { endWorkOf } from '../members.ts'
import { createUser, findUserByEmail, normalEmail, takeAddress } from '../users.ts'

/**
 * The person of this issuer and subject; else the one whose address the provider has verified; else a new one, if there
 * is an invitation to that address or everybody may come. An address that is not verified means nothing.
 */
export async function personOf(db: Database, identity: Identity, allowSignup: boolean): Promise<User> {
  // Neither has a blank in it.
  const oidcSubject = `${identity.issuer} ${identity.subject}`
  const linked = await db.user.findUnique({ where: { oidcSubject } })
  if (linked) return linked
  // As it stands there: in lower case, letters of other alphabets become those of ours, such as the sign of kelvin a k.
  if (!Value.Check(Email, identity.verifiedEmail)) throw new Fault('not_invited')
  const email = normalEmail(identity.verifiedEmail)
  try {
    return await db.$transaction(async (db: Db) => {
      const known = await findUserByEmail(db, email)
      // Somebody else wrote it for themselves. It would keep its owner out.
      const isSquatted = known !== null && known.oidcSubject !== null && known.emailProvedAt === null
      if (isSquatted) await takeAddress(db, known)
      return known && !isSquatted
        ? link(db, known, oidcSubject)
        : admit(db, { ...identity, email, oidcSubject, allowSignup })
    })
  } catch (error) {
    // Two at once: the other one was first, and the next try finds it.
    if (error instanceof Fault && error.code !== 'validation_failed') throw error
    if (error instanceof Fault || violation(error)) throw new Fault('sign_in_failed', undefined, { cause: error })
    throw error
  }
}

/**
 * From now on the identity is the person. Whoever invites somebody has the link too, and may have opened it in that
 * person's name: where nobody has proved the address yet, all that could sign in before ends, with all that it made.
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
  await endWorkOf(db, id)
  const none = { passwordHash: null, totpSecret: null, totpConfirmedAt: null, totpLastStep: null }
  return db.user.update({ where: { id }, data: { ...none, emailProvedAt: new Date() } })
}

type Newcomer = { email: string; name: string | null; oidcSubject: string; allowSignup: boolean }

/** A new person, in no account yet: whoever is invited accepts each invitation by themselves. */
async function admit(db: Db, { email, name, oidcSubject, allowSignup }: Newcomer): Promise<User> {
  const isInvited = (await db.invitation.count({ where: { email, ...open() } })) > 0
  if (!isInvited && !(allowSignup && Value.Check(Email, email))) throw new Fault('not_invited')
  // The person writes it at the provider, as they like.
  const called = Value.Check(PersonName, name) ? name : undefined
  const { id } = await createUser(db, { email, name: called, proved: true })
  return db.user.update({ where: { id }, data: { oidcSubject } })
}
