// Accounts in SQL.
import { int8, optional, statement, text } from '../../platform/statement.ts'

/** Holds the account against other changes until the transaction ends; rows that refer to the account can be made. */
export const lockAccount = statement('accounts.lock', {
  reason: 'not in Prisma',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM account WHERE id = ${p.id} FOR NO KEY UPDATE`,
})

/** The limit of an account by the name of the quota; null if there is none. */
export const readLimit = statement('accounts.limit', {
  reason: 'not in Prisma',
  in: { accountId: text(), name: text() },
  out: { max: optional(int8()) },
  sql: (p) => `SELECT account_limit(${p.accountId}, ${p.name}) AS max`,
})

/** Builds of the account that run now, and minutes of this month. */
export const readBuildUsage = statement('accounts.builds', {
  reason: 'not in Prisma',
  in: { accountId: text() },
  out: { running: int8(), minutes: int8() },
  sql: (p) => `
    SELECT COALESCE((SELECT running FROM build_account WHERE account_id = ${p.accountId}), 0) AS running,
      build_minutes(${p.accountId}) AS minutes`,
})
