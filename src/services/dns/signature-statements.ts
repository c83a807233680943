// Signatures of zones in SQL: found by the set that they are of, and added many at once.
import { bytea, byteaArray, int4, int4Array, statement, textArray } from '../../platform/statement.ts'

/** A key of a signed zone, without its private part; the public one is in base64. */
export type ServedSigningKey = {
  id: string
  tag: number
  publicKey: string
  published: boolean
  signing: boolean
  announced: boolean
}

/** How a zone is signed (DNSSEC). */
export type ServedSigning = {
  denial: 'nsec' | 'nsec3'
  /** The parent is asked to have no DS records any more. */
  cdsDelete: boolean
  /** By id. */
  keys: readonly ServedSigningKey[]
}

/** How a zone is signed; null unless one of its keys signs. */
export const signingOf = (keys: string, denial: string, cdsDelete: string) => `(
  SELECT CASE WHEN bool_or(k.signing) THEN json_build_object('denial', ${denial}, 'cdsDelete', ${cdsDelete}, 'keys',
    json_agg(json_build_object('id', k.id, 'tag', k.tag, 'publicKey', translate(encode(k.public_key, 'base64'), E'\\n', ''),
      'published', k.published, 'signing', k.signing, 'announced', k.announced) ORDER BY k.id)) END
  FROM zone_key k WHERE ${keys})`

/** The signature of each set that is in use at a version of its zone; `place` counts the asked ones from 1. */
export const readSignatureRows = statement('dns.signatures', {
  reason: 'snapshot for an engine',
  in: { keyIds: textArray(), fingerprints: byteaArray(), serials: int4Array() },
  out: { place: int4(), octets: bytea() },
  sql: (p) => `
    SELECT w.place::int AS place, s.octets
    FROM unnest(${p.keyIds}, ${p.fingerprints}, ${p.serials}) WITH ORDINALITY AS w(key_id, fingerprint, serial, place)
    CROSS JOIN LATERAL (
      SELECT s.octets FROM zone_signature s
      WHERE s.key_id = w.key_id AND s.fingerprint = w.fingerprint AND s.since <= w.serial
      ORDER BY s.since DESC LIMIT 1) s`,
})

/** Adds signatures, unless others were first, or the key is gone. */
export const insertSignatureRows = statement('dns.insert-signatures', {
  reason: 'not in Prisma',
  in: {
    keyIds: textArray(),
    fingerprints: byteaArray(),
    names: byteaArray(),
    types: int4Array(),
    octets: byteaArray(),
    renewAts: textArray(),
  },
  out: { count: int4() },
  sql: (p) => `
    WITH made AS (
      INSERT INTO zone_signature (key_id, fingerprint, since, name, type, octets, renew_at)
      SELECT n.key_id, n.fingerprint, 0, n.name, n.type, n.octets, n.renew_at::timestamptz
      FROM unnest(${p.keyIds}, ${p.fingerprints}, ${p.names}, ${p.types}, ${p.octets}, ${p.renewAts})
        AS n(key_id, fingerprint, name, type, octets, renew_at)
      WHERE EXISTS (SELECT 1 FROM zone_key k WHERE k.id = n.key_id)
      ORDER BY n.key_id, n.fingerprint
      ON CONFLICT DO NOTHING RETURNING 1)
    SELECT count(*)::int AS count FROM made`,
})
