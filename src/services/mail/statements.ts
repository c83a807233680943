// SQL statements of emails: locks, streaks of failures, and the number of waiting emails.
import { int4, statement, text, textArray } from '../../platform/database/statement.ts'

/** Locks people until the transaction ends, so that concurrent events count their emails one after the other. */
export const lockRecipients = statement('mail.lock', {
  reason: 'row lock',
  in: { ids: textArray() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM users WHERE id = ANY(${p.ids}) ORDER BY id FOR NO KEY UPDATE`,
})

/** The first production failure since the last success, before the given event; no row if the last was a success. */
export const firstFailure = statement('mail.firstFailure', {
  reason: 'subquery',
  in: { accountId: text(), projectId: text(), before: text() },
  out: { id: text() },
  sql: (p) => {
    const outcome = (type: string) => `FROM event WHERE account_id = ${p.accountId} AND project_id = ${p.projectId}
      AND type = '${type}' AND data ->> 'production' = 'true' AND id < ${p.before}`
    return `
    SELECT id ${outcome('deployment.error')}
      AND id > COALESCE((SELECT id ${outcome('deployment.ready')} ORDER BY id DESC LIMIT 1), '')
    ORDER BY id LIMIT 1`
  },
})

/** The number of due waiting emails, counted up to 10,000. */
export const countWaiting = statement('mail.waiting', {
  reason: 'literal for a partial index',
  in: {},
  out: { count: int4() },
  sql: () => `
    SELECT count(*)::int AS count FROM (SELECT 1 FROM mail WHERE state = 'WAITING' AND due_at <= now() LIMIT 10000) w`,
})
