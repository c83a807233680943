// Idempotency keys in SQL.
import { boolean, bytea, int4, optional, statement, text } from '../../platform/database/statement.ts'

/** Held until commit or rollback, also by a crash: a key can neither run twice at once nor stay locked. */
export const tryLockKey = statement('idempotency.lock', {
  reason: 'not in Prisma',
  in: { key: text() },
  out: { held: boolean() },
  sql: (p) => `SELECT pg_try_advisory_xact_lock(hashtextextended(${p.key}, 0)) AS held`,
})

/** Read before every POST with a key. */
export const findAnswerRow = statement('idempotency.find', {
  reason: 'hot read',
  in: { tokenId: text(), key: text() },
  out: { fingerprint: bytea(), status: int4(), location: optional(text()), etag: optional(text()), sealed: bytea() },
  sql: (p) => `
    SELECT fingerprint, status, location, etag, sealed FROM idempotency_key
    WHERE token_id = ${p.tokenId} AND key = ${p.key} AND created_at > now() - interval '24 hours'`,
})

/** Takes the place of an answer that is a day old, and of no other. */
export const storeAnswerRow = statement('idempotency.store', {
  reason: 'not in Prisma',
  in: {
    tokenId: text(),
    key: text(),
    fingerprint: bytea(),
    status: int4(),
    location: optional(text()),
    etag: optional(text()),
    sealed: bytea(),
  },
  out: { key: text() },
  sql: (p) => `
    INSERT INTO idempotency_key (token_id, key, fingerprint, status, location, etag, sealed, created_at)
    VALUES (${p.tokenId}, ${p.key}, ${p.fingerprint}, ${p.status}, ${p.location}, ${p.etag}, ${p.sealed}, now())
    ON CONFLICT (token_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
      location = excluded.location, etag = excluded.etag, sealed = excluded.sealed, created_at = excluded.created_at
      WHERE idempotency_key.created_at <= now() - interval '24 hours'
    RETURNING key`,
})
