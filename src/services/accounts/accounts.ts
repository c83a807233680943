// Accounts, created by the operator or at first start, each with a test key that is shown once.
import type { Static } from '@sinclair/typebox'
import type { Account } from '../../generated/client.ts'
import { type Db, inTransaction, violation } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { type NewAccount, OperatorAccount } from '../../schemas/operator.ts'
import { append } from '../events/index.ts'
import { type Actor, actorName, type Scope } from '../identity/index.ts'
import { insertToken } from '../tokens/index.ts'

export type AccountView = Static<typeof OperatorAccount>

/** Creates an account and its first token, by default with full access to the account. */
export async function createAccount(
  db: Db,
  name: string,
  scopes: Scope[] = ['*'],
  actor = 'system',
): Promise<{ account: Account; token: string }> {
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
    if (violation(error)?.kind === 'unique')
      throw new Fault('account_exists', `The platform already has an account named ${name}.`)
    throw error
  }
}

const viewRow = viewOf(OperatorAccount)

export function viewAccount(row: Account): AccountView {
  return viewRow(row, {
    suspended: row.suspendedAt !== null,
    suspension: row.suspendedAt && { dns: row.refusesDns ? 'refuse' : 'serve', reason: row.suspensionReason },
  })
}

/** Creates an account for an operator and returns its test key. */
export async function openAccount(db: Db, actor: Actor, name: string): Promise<Static<typeof NewAccount>> {
  const { account, token } = await createAccount(db, name, ['*'], actorName(actor))
  return { ...viewAccount(account), secret: token, token }
}

/** Finds any account of the platform; only for operators. */
export async function findAccount(db: Db, id: string): Promise<Account> {
  const row = await db.account.findFirst({ where: { id } })
  if (!row) throw new Fault('not_found', `There is no account ${id}.`)
  return row
}

export async function listAccounts(db: Db, page: PageRequest): Promise<PageOf<AccountView>> {
  const found = await db.account.findMany(byId(page, 'acc'))
  return pageOf(found, page, viewAccount, (row) => [row.id])
}
