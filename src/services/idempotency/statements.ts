// Idempotency keys in SQL.
import { columnsOf, inserted, omit, replaced, selected } from '../../platform/database/columns.ts'
import { boolean, statement, text } from '../../platform/database/statement.ts'

const row = columnsOf('IdempotencyKey')
const answer = omit(row, ['tokenId', 'key', 'createdAt'])

/** Held until commit or rollback, also by a crash: a key can neither run twice at once nor stay locked. */
export const tryLockKey = statement('idempotency.lock', {
  reason: 'advisory lock',
  in: { key: text() },
  out: { held: boolean() },
  sql: (p) => `SELECT pg_try_advisory_xact_lock(hashtextextended(${p.key}, 0)) AS held`,
})

/** Read before every POST with a key. */
export const findAnswerRow = statement('idempotency.find', {
  reason: 'hot read',
  in: { tokenId: text(), key: text() },
  out: answer,
  sql: (p) => `
    SELECT ${selected(answer, 'idempotency_key')} FROM idempotency_key
    WHERE token_id = ${p.tokenId} AND key = ${p.key} AND created_at > now() - interval '24 hours'`,
})

/** Takes the place of an answer that is a day old, and of no other. */
export const storeAnswerRow = statement('idempotency.store', {
  reason: 'ON CONFLICT … WHERE',
  in: omit(row, ['createdAt']),
  out: { key: text() },
  sql: (p) => `
    INSERT INTO idempotency_key ${inserted(row, { ...p, createdAt: 'now()' })}
    ON CONFLICT (token_id, key) DO UPDATE SET ${replaced({ ...answer, createdAt: row.createdAt })}
      WHERE idempotency_key.created_at <= now() - interval '24 hours'
    RETURNING key`,
})
