// Accounts: made by the operator or at first start, each with a test key that is shown once.
import type { Scope } from '../actor.ts'
import { type Db, inTransaction, violation } from '../db.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import { append } from './events.ts'
import { insertToken } from './tokens.ts'

export type AccountRow = { id: string; name: string; suspendedAt: Date | null; createdAt: Date }

/** Makes an account and its first token, with the full access of the planned design unless told otherwise. */
export async function createAccount(
  db: Db,
  name: string,
  scopes: Scope[] = ['*'],
  actor = 'system',
): Promise<{ account: AccountRow; token: string }> {
  try {
    return await inTransaction(db, async (db) => {
      const account = await db.account.create({ data: { id: newId('acc'), name, createdAt: new Date() } })
      const { secret } = await insertToken(db, {
        accountId: account.id,
        name: 'test key',
        scopes,
        projectIds: [],
        expiresAt: null,
      })
      const event = { type: 'account.created', subject: account.id, projectId: null, accountId: account.id } as const
      await append(db, [{ ...event, actor, data: { id: account.id, name } }])
      return { account, token: secret }
    })
  } catch (error) {
    if (violation(error)?.kind === 'unique') throw new Fault('account_exists', `There is already an account ${name}.`)
    throw error
  }
}
