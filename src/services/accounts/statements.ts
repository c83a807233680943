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

const thisMonth = (name: string, account: string) => `COALESCE((
  SELECT used FROM month_usage WHERE account_id = ${account} AND name = '${name}'
    AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date), 0)`

/** Builds of the account that run now, and what it used in this month. */
export const readMonthUsage = statement('accounts.month', {
  reason: 'not in Prisma',
  in: { accountId: text() },
  out: { running: int8(), minutes: int8(), claims: int8(), messages: int8() },
  sql: (p) => `
    SELECT COALESCE((SELECT running FROM build_account WHERE account_id = ${p.accountId}), 0) AS running,
      build_minutes(${p.accountId}) AS minutes,
      ${thisMonth('claimsPerMonth', p.accountId)} AS claims, ${thisMonth('messagesPerMonth', p.accountId)} AS messages`,
})
