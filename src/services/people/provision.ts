// What the operator does on the command line: create people, add them to accounts, and create sign-in links.
import type { Account, User } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { append, eventOf } from '../events/index.ts'
import { lockAccount } from '../identity/index.ts'
import { narrowDescendants } from '../tokens/index.ts'
import { createLink } from './links.ts'
import { addMember, findMembership, viewMember } from './memberships.ts'
import { type Role, scopesOf } from './roles.ts'
import { createUser, findUserByEmail } from './users.ts'

export type Provision = {
  /** The email or id of a person. */
  who: string
  /** The account that the person joins, unless they are a member already. */
  account: Account | null
  role: Role
  /** Whether the person may use operator routes; undefined leaves it unchanged. */
  operator?: boolean | undefined
}

/** The person with this email may not be the one the operator means. */
export class UnverifiedEmail extends Error {}

export function findPerson(db: Db, who: string): Promise<User | null> {
  return who.includes('@') ? findUserByEmail(db, who) : db.user.findUnique({ where: { id: who } })
}

/**
 * Creates a sign-in link for a person, and the person if needed. `role` applies to a new member only. Rights go only to
 * a person who has proved the email or is named by id, because anybody can claim a free email.
 */
export async function provisionLink(db: Db, { who, account, role, operator }: Provision) {
  return inTransaction(db, async (db) => {
    const existing = await findPerson(db, who)
    const user = existing ?? (await createUser(db, { email: who, proved: true }))
    const member = account && (await db.membership.findFirst({ where: { accountId: account.id, userId: user.id } }))
    const givesRights = (account && !member) || (operator && !user.operator)
    if (givesRights && user.emailProvedAt === null && who !== user.id) {
      throw new UnverifiedEmail(
        `${user.id} has not verified the email ${user.email}. If you mean this user, pass the id.`,
      )
    }
    const current = operator === undefined || operator === user.operator ? user : await setOperator(db, user, operator)
    if (account && !member) {
      await addMember(db, { accountId: account.id, user: current, role, projectIds: [], by: 'system' })
    }
    const query = { where: { userId: user.id }, include: { account: true }, orderBy: { id: 'asc' } } as const
    const memberships = await db.membership.findMany(query)
    return { user: current, isNew: existing === null, memberships, code: await createLink(db, { userId: user.id }) }
  })
}

/** Makes a person an operator or not, which adds the `operator` scope to the token of each membership or removes it. */
async function setOperator(db: Db, { id }: User, operator: boolean): Promise<User> {
  const user = await db.user.update({ where: { id }, data: { operator } })
  const joined = await db.membership.findMany({ where: { userId: id }, orderBy: { accountId: 'asc' } })
  for (const { accountId, id: memberId } of joined) {
    await lockAccount(db, { id: accountId })
    // Read again under the lock: the role may have changed, and the person may have left.
    const member = await db.membership.findUnique({ where: { id: memberId } })
    if (!member) continue
    const { role, tokenId } = member
    const actor = { accountId, tokenId: 'system', scopes: [], projectIds: null }
    await db.token.update({ where: { id: tokenId }, data: { scopes: scopesOf(role as Role, user) } })
    await narrowDescendants(db, actor, tokenId)
    const data = viewMember(await findMembership(db, accountId, memberId))
    await append(db, [eventOf(actor, 'member.updated', { subject: id, projectId: null, data })])
  }
  return user
}

/** Lists everybody with their accounts; only for the operator's command line. */
export async function listPeople(db: Db) {
  const include = { memberships: { include: { account: true }, orderBy: { id: 'asc' } } } as const
  return db.user.findMany({ include, orderBy: { id: 'asc' } })
}
