// SQL statements of quotas.
import { int8, optional, statement, text } from '../../platform/database/statement.ts'

/** The limit of an account by the name of the quota; null if there is none. */
export const readLimit = statement('accounts.limit', {
  reason: 'function of the database',
  in: { accountId: text(), name: text() },
  out: { max: optional(int8()) },
  sql: (p) => `SELECT account_limit(${p.accountId}, ${p.name}) AS max`,
})
