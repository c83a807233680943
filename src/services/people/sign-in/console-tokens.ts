// Console tokens: a session creates ten-minute tokens with the person's rights in one account.
import type { Account, Membership } from '../../../generated/client.ts'
import { type Db, inTransaction, violation } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import { lockAccount, type Scope } from '../../identity/index.ts'
import { insertToken, withNames } from '../../tokens/index.ts'
import type { SessionWithUser } from '../sessions.ts'

const lifeMs = 10 * 60_000

export type MembershipWithAccount = Membership & { account: Account }

/** Lists the memberships of a person, oldest first. */
export function listMemberships(db: Db, userId: string): Promise<MembershipWithAccount[]> {
  return db.membership.findMany({ where: { userId }, include: { account: true }, orderBy: { id: 'asc' } })
}

/** Finds a membership by the id or name of the account; default: the first one. */
export async function findMembership(db: Db, userId: string, account?: string): Promise<MembershipWithAccount> {
  const memberships = await listMemberships(db, userId)
  const found =
    account === undefined
      ? memberships[0]
      : memberships.find(({ account: { id, name } }) => account === id || account === name)
  if (!found) {
    const detail = account ? `You are not a member of ${account}.` : 'You are not a member of any account.'
    throw new Fault('not_found', detail)
  }
  return found
}

/** Creates a token for one account of the person, by its id or name; default: the first one. */
export async function mintToken(db: Db, session: SessionWithUser, accountIdOrName?: string) {
  const chosen = await findMembership(db, session.userId, accountIdOrName)
  return inTransaction(db, async (db) => {
    await lockAccount(db, { id: chosen.accountId })
    const membership = await db.membership.findFirst({
      where: { id: chosen.id },
      include: { account: true, token: true },
    })
    if (!membership) throw new Fault('not_found', `You are not a member of ${chosen.account.name}.`)
    const { account, role, tokenId: parentId, token: parent } = membership
    if (account.suspendedAt) throw new Fault('account_suspended')
    const scopes = parent.scopes as Scope[]
    // The token must not outlive the session.
    const expiresAt = new Date(Math.min(Date.now() + lifeMs, session.expiresAt.getTime()))
    const { userId, id: sessionId } = session
    const rights = { accountId: account.id, scopes, projectIds: parent.projectIds, expiresAt }
    const token = { ...rights, name: 'console', parentId, userId, sessionId, hidden: true }
    const { secret } = await insertToken(db, token).catch((error) => {
      // The session has ended in the meantime.
      if (violation(error)?.kind === 'foreign') throw new Fault('not_signed_in')
      throw error
    })
    const [row] = await withNames(db, [parent])
    return {
      secret,
      expiresAt: expiresAt.toISOString(),
      account: { id: account.id, name: account.name },
      role,
      scopes,
      projects: parent.projectIds.length > 0 ? row!.projects : null,
    }
  })
}
