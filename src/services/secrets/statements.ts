// SQL statements of sealed values: lists every column that has them, and reads and replaces them in batches.

import { bytea, byteaArray, int4, int8, statement, text, textArray } from '../../platform/database/statement.ts'
import { placeOf } from '../../platform/secrets/secrets.ts'

/** Serializes the admission of keys; held until the transaction ends. */
export const lockSealingKeys = statement('secrets.lock', {
  reason: 'advisory lock',
  in: {},
  out: { locked: text() },
  sql: () => `SELECT pg_advisory_xact_lock(hashtextextended('sealing_key', 0))::text AS locked`,
})

type Source = {
  table: string
  column: string
  /** The columns of the primary key; the sealed value is bound to the first two. */
  keys: readonly [string, string?, string?]
  place(...keys: string[]): string
}

/** The primary key of a row of any table; unused parts are empty. */
export type SealedKey = { first: string; second: string; third: string }

/** `header` is the prefix of values that the current key has sealed. */
function sealedColumn({ table, column, keys: [first, ...others], place }: Source) {
  const name = `${table}.${column}`
  const [second = `''::text`, third = `''::text`] = others
  const keys = [first, ...others].join(', ')
  const selected = `${first} AS first, ${second} AS second, ${third} AS third, ${column} AS sealed`
  const isAfter = (p: { afterFirst: string; afterSecond: string; afterThird: string }) => {
    const after = [p.afterFirst, p.afterSecond, p.afterThird]
    const unused = after.slice(1 + others.length).map((place) => ` AND ${place} = ''`)
    return `(${keys}) > (${after.slice(0, 1 + others.length).join(', ')})${unused.join('')}`
  }
  return {
    name,
    place,
    /** The next values that are not sealed with the current key or not in the current format. */
    readStale: statement(`secrets.stale.${name}`, {
      reason: 'comparison of rows',
      in: { header: bytea(), afterFirst: text(), afterSecond: text(), afterThird: text(), limit: int4() },
      out: { first: text(), second: text(), third: text(), sealed: bytea() },
      sql: (p) => `
        SELECT ${selected} FROM ${table}
        WHERE ${column} IS NOT NULL AND substr(${column}, 1, length(${p.header})) <> ${p.header}
          AND ${isAfter(p)}
        ORDER BY ${keys} LIMIT ${p.limit}`,
    }),
    /** Replaces values that have not changed since they were read. Skips locked rows. */
    replace: statement(`secrets.replace.${name}`, {
      reason: 'SKIP LOCKED',
      in: { first: textArray(), second: textArray(), third: textArray(), before: byteaArray(), sealed: byteaArray() },
      out: { first: text() },
      sql: (p) => `
        WITH due AS (
          SELECT t.ctid AS place, n.sealed FROM ${table} t
          JOIN unnest(${p.first}, ${p.second}, ${p.third}, ${p.before}, ${p.sealed}) AS n(first, second, third, before, sealed)
            ON t.${first} = n.first AND ${second} = n.second AND ${third} = n.third AND t.${column} = n.before
          FOR NO KEY UPDATE OF t SKIP LOCKED)
        UPDATE ${table} t SET ${column} = due.sealed FROM due WHERE t.ctid = due.place RETURNING t.${first} AS first`,
    }),
    /** Counts values by their prefix, which names their key. */
    countByHeader: statement(`secrets.count.${name}`, {
      reason: 'expression of columns',
      in: { length: int4() },
      out: { header: bytea(), count: int8() },
      sql: (p) => `
        SELECT CASE get_byte(${column}, 0) WHEN 1 THEN substr(${column}, 1, 1) ELSE substr(${column}, 1, ${p.length}) END
          AS header, count(*) AS count
        FROM ${table} WHERE ${column} IS NOT NULL GROUP BY 1`,
    }),
  }
}

export type SealedColumn = ReturnType<typeof sealedColumn>

/** Certificates come first, because sites need their keys. */
export const sealedColumns: readonly SealedColumn[] = [
  sealedColumn({ table: 'certificate', column: 'key', keys: ['id'], place: placeOf.certificate }),
  sealedColumn({ table: 'internal_ca', column: 'key', keys: ['id'], place: placeOf.internalCa }),
  sealedColumn({ table: 'acme_account', column: 'key', keys: ['directory'], place: placeOf.acmeAccount }),
  sealedColumn({ table: 'acme_order', column: 'key', keys: ['subject'], place: placeOf.acmeOrder }),
  sealedColumn({ table: 'development_ca', column: 'key', keys: ['id'], place: placeOf.developmentCa }),
  sealedColumn({ table: 'variable', column: 'sealed', keys: ['project_id', 'key', 'target'], place: placeOf.variable }),
  sealedColumn({ table: 'webhook', column: 'secret', keys: ['id'], place: placeOf.webhook }),
  sealedColumn({ table: 'webhook', column: 'old_secret', keys: ['id'], place: placeOf.webhook }),
  sealedColumn({ table: 'push_hook', column: 'secret', keys: ['project_id'], place: placeOf.pushHook }),
  sealedColumn({ table: 'push_hook', column: 'old_secret', keys: ['project_id'], place: placeOf.pushHook }),
  sealedColumn({ table: 'push_hook', column: 'status_token', keys: ['project_id'], place: placeOf.statusToken }),
  sealedColumn({ table: 'repository_access', column: 'secret', keys: ['project_id'], place: placeOf.repositoryAccess }),
  sealedColumn({ table: 'dns_key', column: 'secret', keys: ['id'], place: placeOf.dnsKey }),
  sealedColumn({ table: 'zone_key', column: 'private_key', keys: ['id'], place: placeOf.zoneKey }),
  sealedColumn({ table: 'zone_primary', column: 'key_secret', keys: ['domain_id'], place: placeOf.zonePrimary }),
  sealedColumn({ table: 'users', column: 'totp_secret', keys: ['id'], place: placeOf.totp }),
  sealedColumn({ table: 'idempotency_key', column: 'sealed', keys: ['token_id', 'key'], place: placeOf.answer }),
]
