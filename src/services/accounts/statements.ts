// Accounts in SQL.
import { int4, int8, statement, text } from '../../platform/database/statement.ts'

const thisMonth = (name: string, account: string) => `COALESCE((
  SELECT used FROM month_usage WHERE account_id = ${account} AND name = '${name}'
    AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date), 0)`

/** Builds of the account that run now, and what it used in this month. */
export const readMonthUsage = statement('accounts.month', {
  reason: 'function of the database',
  in: { accountId: text() },
  out: { running: int8(), minutes: int8(), claims: int8(), messages: int8() },
  sql: (p) => `
    SELECT COALESCE((SELECT running FROM build_account WHERE account_id = ${p.accountId}), 0) AS running,
      build_minutes(${p.accountId}) AS minutes,
      ${thisMonth('claimsPerMonth', p.accountId)} AS claims, ${thisMonth('messagesPerMonth', p.accountId)} AS messages`,
})

/** Raises the most that each account stored in this month to what it stores now. */
export const recordStoredMaximum = statement('accounts.recordStoredMaximum', {
  reason: 'INSERT … SELECT',
  in: {},
  out: { noted: int4() },
  sql: () => `
    WITH noted AS (
      INSERT INTO month_usage AS m (account_id, name, month, used)
      SELECT a.id, 'storedBytes', date_trunc('month', now() AT TIME ZONE 'UTC')::date, sum(u.used)
      FROM account_usage u JOIN account a ON a.id = u.account_id WHERE u.name = 'storedBytes' GROUP BY a.id ORDER BY a.id
      ON CONFLICT (account_id, name, month) DO UPDATE SET used = excluded.used WHERE m.used < excluded.used
      RETURNING 1
    )
    SELECT count(*)::integer AS noted FROM noted`,
})
