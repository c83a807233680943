// Links that are opened once: `/setup#<code>` signs a known person in, makes the first owner, or accepts an invitation.
import type { Account, Invitation, SignInLink, User } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { hashToken, newSecret } from '../../platform/secrets/secrets.ts'
import { lockAccount } from '../identity/index.ts'
import { addMember } from './memberships.ts'
import type { Role } from './roles.ts'
import { openSession, type SignIn } from './sessions.ts'
import { lockUser } from './sign-in-statements.ts'
import { createUser, findUserByEmail, normalEmail } from './users.ts'

const linkMs = 30 * 60_000

export function setupUrl(baseUrl: string, code: string): string {
  return `${new URL(baseUrl).origin}/setup#${code}`
}

/** A link for a known person, or for whoever opens it first as the first owner of an account. */
export async function createLink(db: Db, of: { userId: string } | { accountId: string }): Promise<string> {
  const code = newSecret()
  const now = new Date()
  const expiresAt = new Date(now.getTime() + linkMs)
  await db.signInLink.create({ data: { ...of, hash: hashOf(code), createdAt: now, expiresAt } })
  return code
}

export const hashOf = (code: string) => Uint8Array.from(hashToken(code))

type Found =
  | { kind: 'link'; link: SignInLink; user: User }
  | { kind: 'first-owner'; link: SignInLink; account: Account }
  | { kind: 'invitation'; invitation: Invitation; account: Account; mailed: boolean }

/** What a code is good for; one that is unknown, used or too old is all the same. */
async function findCode(db: Db, code: string): Promise<Found> {
  const now = new Date()
  const hash = hashOf(code)
  const link = await db.signInLink.findUnique({ where: { hash }, include: { user: true, account: true } })
  if (link && link.usedAt === null && link.expiresAt > now) {
    if (link.user) return { kind: 'link', link, user: link.user }
    if (link.account && (await hasNoMember(db, link.account.id))) {
      return { kind: 'first-owner', link, account: link.account }
    }
  }
  const invitation = await db.invitation.findFirst({
    where: { OR: [{ hash }, { mailHash: hash }] },
    include: { account: true },
  })
  if (!invitation || invitation.acceptedAt !== null || invitation.expiresAt <= now) throw new Fault('link_not_valid')
  // Only who reads the mails of the address has the code that was mailed.
  const mailed = invitation.mailHash !== null && Buffer.compare(invitation.mailHash, hash) === 0
  return { kind: 'invitation', invitation, account: invitation.account, mailed }
}

export async function hasNoMember(db: Db, accountId: string): Promise<boolean> {
  return (await db.membership.count({ where: { accountId } })) === 0
}

/** What a code would do, without using it up. */
export async function lookAtCode(db: Db, code: string) {
  const found = await findCode(db, code)
  if (found.kind === 'first-owner') return { kind: found.kind, email: null, account: found.account.name, role: 'owner' }
  if (found.kind === 'invitation') {
    return { kind: found.kind, email: found.invitation.email, account: found.account.name, role: found.invitation.role }
  }
  const where = { userId: found.user.id }
  const first = await db.membership.findFirst({ where, include: { account: true }, orderBy: { id: 'asc' } })
  const account = first?.account.name ?? null
  return { kind: found.kind, email: found.user.email, account, role: first?.role ?? null }
}

export type CodeUse = {
  code: string
  email?: string | undefined
  name?: string | undefined
  /** Who is signed in already in the browser that opened the link. */
  signedInAs: string | null
  from: Omit<SignIn, 'userId' | 'method'>
}

/** Uses a code up and signs the person in, both or neither. */
export async function takeCode(db: Db, { code, from, ...given }: CodeUse) {
  return inTransaction(db, async (db) => {
    const found = await findCode(db, code)
    // Person, account, invitation: as everywhere, so that nobody who waits holds up whom they wait for.
    if (given.signedInAs) await lockUser(db, { id: given.signedInAs })
    if (found.kind !== 'link') await lockAccount(db, { id: found.account.id })
    await useUp(db, found)
    const user = await personOf(db, found, given)
    return openSession(db, { userId: user.id, method: 'link', ...from })
  })
}

/** Of two at once, one changes the row; the other one finds it changed. */
async function useUp(db: Db, found: Found): Promise<void> {
  const now = new Date()
  const { count } =
    found.kind === 'invitation'
      ? await db.invitation.updateMany({
          where: { id: found.invitation.id, acceptedAt: null, expiresAt: { gt: now } },
          data: { acceptedAt: now },
        })
      : await db.signInLink.updateMany({
          where: { hash: found.link.hash, usedAt: null, expiresAt: { gt: now } },
          data: { usedAt: now },
        })
  if (count === 0) throw new Fault('link_not_valid')
}

type Given = Pick<CodeUse, 'email' | 'name' | 'signedInAs'>

async function personOf(db: Db, found: Found, { email, name, signedInAs }: Given): Promise<User> {
  if (found.kind === 'first-owner') {
    if (email === undefined) throw invalidField('#/email', 'required', 'is required')
    const accountId = found.account.id
    await lockAccount(db, { id: accountId })
    // There is one link for each start of the server, and one first owner.
    if (!(await hasNoMember(db, accountId))) throw new Fault('link_not_valid')
    const user = await createUser(db, { email, name, operator: true, proved: true })
    await addMember(db, { accountId, user, role: 'owner', projectIds: [] })
    return user
  }
  const known = found.kind === 'link' ? found.user.email : found.invitation.email
  if (email !== undefined && normalEmail(email) !== known) {
    throw invalidField('#/email', 'not_allowed', 'must be the email that the link was sent to')
  }
  if (found.kind === 'link') {
    return name === undefined ? found.user : db.user.update({ where: { id: found.user.id }, data: { name } })
  }
  // Whoever invites has the link too, so it must not sign in a person who is there already.
  const existing = await findUserByEmail(db, known)
  if (existing && existing.id !== signedInAs) throw new Fault('sign_in_first')
  const user = existing ?? (await createUser(db, { email: known, name, proved: found.mailed }))
  const { accountId, role, projectIds } = found.invitation
  await addMember(db, { accountId, user, role: role as Role, projectIds })
  return user
}
