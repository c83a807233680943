// Accounts: made by the operator or at first start, each with a test key that is shown once.
import type { Static } from '@sinclair/typebox'
import type { Actor, Scope } from '../actor.ts'
import { type Db, inTransaction, rows, sql, violation } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { NewAccount, OperatorAccount } from '../schemas/operator.ts'
import { append } from './events.ts'
import { insertToken } from './tokens.ts'

export type AccountView = Static<typeof OperatorAccount>

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

const columns = sql`a.id, a.name, a.suspended_at AS "suspendedAt", a.created_at AS "createdAt"`

export function viewAccount(row: AccountRow): AccountView {
  return {
    id: row.id,
    name: row.name,
    suspended: row.suspendedAt !== null,
    suspendedAt: row.suspendedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
  }
}

/** An account made at the operator's desk, and the test key to hand out. */
export async function openAccount(db: Db, actor: Actor, name: string): Promise<Static<typeof NewAccount>> {
  const { account, token } = await createAccount(db, name, ['*'], actor.tokenId)
  return { ...viewAccount(account), token }
}

/** Any account of the platform: for the operator's desk alone. */
export async function findAccount(db: Db, id: string, lock = false): Promise<AccountRow> {
  const [row] = await rows<AccountRow>(
    db,
    sql`SELECT ${columns} FROM account a WHERE a.id = ${id} ${lock ? sql`FOR NO KEY UPDATE` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `There is no account ${id}.`)
  return row
}

export async function listAccounts(db: Db, page: PageRequest): Promise<PageOf<AccountView>> {
  const descending = page.order === 'desc'
  const after = !page.after
    ? sql``
    : descending
      ? sql`WHERE a.id < ${page.after[0]}`
      : sql`WHERE a.id > ${page.after[0]}`
  const found = await rows<AccountRow>(
    db,
    sql`SELECT ${columns} FROM account a ${after}
        ORDER BY a.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, viewAccount, (row) => [row.id])
}

/** Suspends or resumes an account; nothing happens, and no event, if it is so already. */
export async function suspendAccount(
  db: Db,
  actor: Actor,
  id: string,
  suspended: boolean,
  precondition: (view: AccountView) => void,
): Promise<AccountView> {
  return inTransaction(db, async (db) => {
    const before = await findAccount(db, id, true)
    precondition(viewAccount(before))
    if (suspended && id === actor.accountId) {
      // Nobody would be left to lift it.
      throw invalidField('#/suspended', 'own_account', 'an operator cannot suspend the account it works from')
    }
    if (suspended === (before.suspendedAt !== null)) return viewAccount(before)
    const suspendedAt = suspended ? new Date() : null
    await db.account.update({ where: { id }, data: { suspendedAt } })
    const type = suspended ? 'account.suspended' : 'account.resumed'
    const data = { id, name: before.name }
    await append(db, [{ accountId: id, projectId: null, type, actor: actor.tokenId, subject: id, data }])
    return viewAccount({ ...before, suspendedAt })
  })
}
