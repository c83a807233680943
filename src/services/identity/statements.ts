// The lock of an account, in SQL.
import { statement, text } from '../../platform/database/statement.ts'

/** Holds the account against other changes until the transaction ends; rows that refer to the account can be made. */
export const lockAccount = statement('accounts.lock', {
  reason: 'row lock',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM account WHERE id = ${p.id} FOR NO KEY UPDATE`,
})
