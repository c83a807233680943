// Tokens for the console: a session is turned into one of ten minutes, with the rights of the person in one account.
import type { Account, Membership } from '../../../generated/client.ts'
import { type Db, inTransaction, violation } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import { lockAccount, type Scope } from '../../identity/index.ts'
import { insertToken, withNames } from '../../tokens/index.ts'
import type { SessionWithUser } from '../sessions.ts'

const lifeMs = 10 * 60_000

export type MembershipWithAccount = Membership & { account: Account }

/** The accounts of a person, the oldest membership first. */
export function listMemberships(db: Db, userId: string): Promise<MembershipWithAccount[]> {
  return db.membership.findMany({ where: { userId }, include: { account: true }, orderBy: { id: 'asc' } })
}

/** By the id or the name of the account; default: the first one. */
export async function findMembership(db: Db, userId: string, wanted?: string): Promise<MembershipWithAccount> {
  const memberships = await listMemberships(db, userId)
  const isWanted = ({ account: { id, name } }: MembershipWithAccount) => wanted === id || wanted === name
  const chosen = wanted === undefined ? memberships[0] : memberships.find(isWanted)
  if (!chosen)
    throw new Fault('not_found', wanted ? `You are not a member of ${wanted}.` : 'You are not a member of any account.')
  return chosen
}

/** A token for one account of the person, by its id or name; default: the first one. */
export async function mintToken(db: Db, session: SessionWithUser, wanted?: string) {
  const chosen = await findMembership(db, session.userId, wanted)
  return inTransaction(db, async (db) => {
    await lockAccount(db, { id: chosen.accountId })
    const membership = await db.membership.findFirst({
      where: { id: chosen.id },
      include: { account: true, token: true },
    })
    if (!membership) throw new Fault('not_found', `You are not a member of ${chosen.account.name}.`)
    const { account, role, tokenId: parentId, token: held } = membership
    if (account.suspendedAt) throw new Fault('account_suspended')
    const scopes = held.scopes as Scope[]
    // Never longer than the session, which may end sooner.
    const expiresAt = new Date(Math.min(Date.now() + lifeMs, session.expiresAt.getTime()))
    const { userId, id: sessionId } = session
    const rights = { accountId: account.id, scopes, projectIds: held.projectIds, expiresAt }
    const made = { ...rights, name: 'console', parentId, userId, sessionId, hidden: true }
    const { secret } = await insertToken(db, made).catch((error) => {
      // The session was ended meanwhile.
      if (violation(error)?.kind === 'foreign') throw new Fault('not_signed_in')
      throw error
    })
    const [row] = await withNames(db, [held])
    return {
      secret,
      expiresAt: expiresAt.toISOString(),
      account: { id: account.id, name: account.name },
      role,
      scopes,
      projects: held.projectIds.length > 0 ? row!.projects : null,
    }
  })
}
