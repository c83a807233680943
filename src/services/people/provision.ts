// What the operator of the machine does by hand: people, their accounts, and a link that signs them in.
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
  /** An address, or the id of a person. */
  who: string
  /** Whose member the person becomes, if they are none. */
  account: Account | null
  role: Role
  /** Whether the person may use the operator's part of the API; undefined: as it is. */
  operator?: boolean | undefined
}

/** Whoever has the address now may be somebody else than who is meant. */
export class NotProved extends Error {}

export function findPerson(db: Db, who: string): Promise<User | null> {
  return who.includes('@') ? findUserByEmail(db, who) : db.user.findUnique({ where: { id: who } })
}

/**
 * A link for a person, who is made where there is none; `role` counts for a new member alone. Rights are given to who has
 * proved the address, or is named by the id: anybody can write an address that is free.
 */
export async function provideLink(db: Db, { who, account, role, operator }: Provision) {
  return inTransaction(db, async (db) => {
    const known = await findPerson(db, who)
    const user = known ?? (await createUser(db, { email: who, proved: true }))
    const member = account && (await db.membership.findFirst({ where: { accountId: account.id, userId: user.id } }))
    const givesRights = (account && !member) || (operator && !user.operator)
    if (givesRights && user.emailProvedAt === null && who !== user.id) {
      throw new NotProved(`${user.id} has not verified the email ${user.email}. If you mean this user, pass the id.`)
    }
    const current = operator === undefined || operator === user.operator ? user : await setOperator(db, user, operator)
    if (account && !member) {
      await addMember(db, { accountId: account.id, user: current, role, projectIds: [], by: 'system' })
    }
    const query = { where: { userId: user.id }, include: { account: true }, orderBy: { id: 'asc' } } as const
    const memberships = await db.membership.findMany(query)
    return { user: current, isNew: known === null, memberships, code: await createLink(db, { userId: user.id }) }
  })
}

/** The token of each membership has the operator's scope as long as the person is one. */
async function setOperator(db: Db, { id }: User, operator: boolean): Promise<User> {
  const user = await db.user.update({ where: { id }, data: { operator } })
  const joined = await db.membership.findMany({ where: { userId: id }, orderBy: { accountId: 'asc' } })
  for (const { accountId, id: memberId } of joined) {
    await lockAccount(db, { id: accountId })
    // As it is under the lock: the role may be another one, and the person may have left.
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

/** Everybody, with the accounts they are in: for the operator of the machine alone. */
export async function listPeople(db: Db) {
  const include = { memberships: { include: { account: true }, orderBy: { id: 'asc' } } } as const
  return db.user.findMany({ include, orderBy: { id: 'asc' } })
}
