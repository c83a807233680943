// Single-use links: `/setup#<code>` signs in an existing person, creates the first owner, or accepts an invitation.
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

/** Creates a link for an existing person, or one that makes the first person to open it the owner of an account. */
export async function createLink(db: Db, of: { userId: string } | { accountId: string }): Promise<string> {
  const code = newSecret()
  const now = new Date()
  const expiresAt = new Date(now.getTime() + linkMs)
  await db.signInLink.create({ data: { ...of, hash: hashOf(code), createdAt: now, expiresAt } })
  return code
}

export const hashOf = (code: string) => Uint8Array.from(hashToken(code))

type CodeTarget =
  | { kind: 'link'; link: SignInLink; user: User }
  | { kind: 'first-owner'; link: SignInLink; account: Account }
  | { kind: 'invitation'; invitation: Invitation; account: Account; mailed: boolean }

/** Finds what a code opens. Unknown, used and expired codes get the same error. */
async function findCode(db: Db, code: string): Promise<CodeTarget> {
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
  // The emailed code differs from the one the inviter sees, so it proves the email.
  const mailed = invitation.mailHash !== null && Buffer.compare(invitation.mailHash, hash) === 0
  return { kind: 'invitation', invitation, account: invitation.account, mailed }
}

export async function hasNoMember(db: Db, accountId: string): Promise<boolean> {
  return (await db.membership.count({ where: { accountId } })) === 0
}

/** Describes what a code does without redeeming it. */
export async function previewCode(db: Db, code: string) {
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

export type CodeRedemption = {
  code: string
  email?: string | undefined
  name?: string | undefined
  /** The id of the person already signed in in the browser that opened the link. */
  signedInAs: string | null
  from: Omit<SignIn, 'userId' | 'method'>
}

/** Redeems a code and signs the person in, in one transaction. */
export async function redeemCode(db: Db, { code, from, ...input }: CodeRedemption) {
  return inTransaction(db, async (db) => {
    const found = await findCode(db, code)
    // Lock order everywhere: person, account, invitation. A different order could deadlock.
    if (input.signedInAs) await lockUser(db, { id: input.signedInAs })
    if (found.kind !== 'link') await lockAccount(db, { id: found.account.id })
    await markUsed(db, found)
    const user = await resolveUser(db, found, input)
    return openSession(db, { userId: user.id, method: 'link', ...from })
  })
}

/** Marks the code as used. Of two concurrent requests, only one changes the row; the other fails. */
async function markUsed(db: Db, found: CodeTarget): Promise<void> {
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

type UserInput = Pick<CodeRedemption, 'email' | 'name' | 'signedInAs'>

async function resolveUser(db: Db, found: CodeTarget, { email, name, signedInAs }: UserInput): Promise<User> {
  if (found.kind === 'first-owner') {
    if (email === undefined) throw invalidField('#/email', 'required', 'is required')
    const accountId = found.account.id
    await lockAccount(db, { id: accountId })
    // Every start of the server creates such a link, but an account gets only one first owner.
    if (!(await hasNoMember(db, accountId))) throw new Fault('link_not_valid')
    const user = await createUser(db, { email, name, operator: true, proved: true })
    await addMember(db, { accountId, user, role: 'owner', projectIds: [] })
    return user
  }
  const expected = found.kind === 'link' ? found.user.email : found.invitation.email
  if (email !== undefined && normalEmail(email) !== expected) {
    throw invalidField('#/email', 'not_allowed', 'must be the email that the link was sent to')
  }
  if (found.kind === 'link') {
    return name === undefined ? found.user : db.user.update({ where: { id: found.user.id }, data: { name } })
  }
  // The inviter has the link too, so it must not sign in an existing person.
  const existing = await findUserByEmail(db, expected)
  if (existing && existing.id !== signedInAs) throw new Fault('sign_in_first')
  const user = existing ?? (await createUser(db, { email: expected, name, proved: found.mailed }))
  const { accountId, role, projectIds } = found.invitation
  await addMember(db, { accountId, user, role: role as Role, projectIds })
  return user
}
