// SQL statements of idempotency keys.
import { boolean, bytea, int4, optional, statement, text } from '../../platform/database/statement.ts'

/** Held until commit, rollback or a crash, so a key neither runs twice at once nor stays locked. */
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

/** Stores a response. Replaces only one that is at least a day old. */
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
