// The SQL statement that locks an account.
import { statement, text } from '../../platform/database/statement.ts'

/** Locks the account until the transaction ends; rows that reference it can still be inserted. */
export const lockAccount = statement('accounts.lock', {
  reason: 'row lock',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM account WHERE id = ${p.id} FOR NO KEY UPDATE`,
})
