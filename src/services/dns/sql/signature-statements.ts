// Signatures of zones in SQL: found by the set that they are of, and added many at once.
import {
  bytea,
  byteaArray,
  int4,
  int4Array,
  optional,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../../platform/database/statement.ts'

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
  /** Keys of another provider that signs the zone too, as values of DNSKEY records; without it, there are none. */
  foreignKeys?: readonly string[]
  /** By id. */
  keys: readonly ServedSigningKey[]
}

/** How the platform's own zones are signed; null unless a key signs. The function served_zones has it for those of customers. */
export const platformSigning = `(
  SELECT CASE WHEN bool_or(k.signing) THEN json_build_object('denial', 'nsec', 'cdsDelete', false, 'keys',
    json_agg(json_build_object('id', k.id, 'tag', k.tag, 'publicKey', translate(encode(k.public_key, 'base64'), E'\\n', ''),
      'published', k.published, 'signing', k.signing, 'announced', k.announced) ORDER BY k.id)) END
  FROM zone_key k WHERE k.domain_id IS NULL)`

/** The signature of each set that is in use at a version of its zone; `place` counts the asked ones from 1. */
export const readSignatureRows = statement('dns.signatures', {
  reason: 'snapshot for an engine',
  in: { keyIds: textArray(), fingerprints: byteaArray(), serials: int4Array() },
  out: { place: int4(), octets: bytea() },
  sql: (p) => `SELECT place, octets FROM zone_signatures(${p.keyIds}, ${p.fingerprints}, ${p.serials})`,
})

/** Prisma takes longer for it than the change of a zone may take that waits for its key. */
export const readPrivateKeyRows = statement('dns.private-keys', {
  reason: 'hot read',
  in: { ids: textArray() },
  out: { id: text(), privateKey: bytea() },
  sql: (p) => `SELECT k.id, k.private_key AS "privateKey" FROM zone_key k WHERE k.id = ANY(${p.ids})`,
})

/** Adds signatures, unless others were first, or the key is gone. */
export const insertSignatureRows = statement('dns.insert-signatures', {
  reason: 'list as one parameter',
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

/** The serial of a zone, which nobody else changes until the transaction ends; without a domain, that of the platform. */
export const lockZoneSerial = statement('dns.lock-serial', {
  reason: 'row lock',
  in: { domainId: optional(text()), name: text() },
  out: { serial: int4() },
  sql: (p) => `
    WITH own AS (SELECT serial FROM domain WHERE id = ${p.domainId} FOR NO KEY UPDATE),
    platform AS (SELECT serial FROM platform_zone WHERE name = ${p.name} AND ${p.domainId} IS NULL FOR NO KEY UPDATE)
    SELECT serial FROM own UNION ALL SELECT serial FROM platform`,
})

/** Signatures that are to be renewed or removed; `zone` is null for the platform's own. */
export const dueSignatureRows = statement('dns.due-signatures', {
  reason: 'join in one statement',
  in: { now: timestamptz(), limit: int4() },
  out: {
    keyId: text(),
    fingerprint: bytea(),
    since: int4(),
    name: bytea(),
    type: int4(),
    octets: bytea(),
    domainId: optional(text()),
    zone: optional(text()),
  },
  sql: (p) => `
    SELECT s.key_id AS "keyId", s.fingerprint, s.since, s.name, s.type, s.octets, k.domain_id AS "domainId", d.name AS zone
    FROM zone_signature s JOIN zone_key k ON k.id = s.key_id LEFT JOIN domain d ON d.id = k.domain_id
    WHERE s.renew_at < ${p.now} ORDER BY s.renew_at LIMIT ${p.limit}`,
})

/** Adds signatures in place of others from a version on; none where somebody else was first. */
export const renewSignatureRows = statement('dns.renew-signatures', {
  reason: 'several writes in one statement',
  in: {
    serial: int4(),
    keyIds: textArray(),
    fingerprints: byteaArray(),
    names: byteaArray(),
    types: int4Array(),
    octets: byteaArray(),
    renewAts: textArray(),
  },
  out: { count: int4() },
  sql: (p) => `
    WITH renewed AS (
      SELECT * FROM unnest(${p.keyIds}, ${p.fingerprints}, ${p.names}, ${p.types}, ${p.octets}, ${p.renewAts})
        AS n(key_id, fingerprint, name, type, octets, renew_at)),
    taken AS (
      UPDATE zone_signature s SET renew_at = NULL FROM renewed n
      WHERE s.key_id = n.key_id AND s.fingerprint = n.fingerprint AND s.renew_at IS NOT NULL
      RETURNING s.key_id, s.fingerprint),
    made AS (
      INSERT INTO zone_signature (key_id, fingerprint, since, name, type, octets, renew_at)
      SELECT DISTINCT ON (n.key_id, n.fingerprint)
        n.key_id, n.fingerprint, ${p.serial}, n.name, n.type, n.octets, n.renew_at::timestamptz
      FROM renewed n JOIN taken t ON t.key_id = n.key_id AND t.fingerprint = n.fingerprint
      ON CONFLICT DO NOTHING RETURNING 1)
    SELECT count(*)::int AS count FROM made`,
})

/** Removes signatures with the ones that came before them. */
export const deleteSignatureRows = statement('dns.delete-signatures', {
  reason: 'list as one parameter',
  in: { keyIds: textArray(), fingerprints: byteaArray() },
  out: { count: int4() },
  sql: (p) => `
    WITH gone AS (
      DELETE FROM zone_signature s USING unnest(${p.keyIds}, ${p.fingerprints}) AS n(key_id, fingerprint)
      WHERE s.key_id = n.key_id AND s.fingerprint = n.fingerprint RETURNING 1)
    SELECT count(*)::int AS count FROM gone`,
})

/** Has signatures looked at again at another time. */
export const postponeSignatureRows = statement('dns.postpone-signatures', {
  reason: 'list as one parameter',
  in: { keyIds: textArray(), fingerprints: byteaArray(), until: timestamptz() },
  out: { count: int4() },
  sql: (p) => `
    WITH moved AS (
      UPDATE zone_signature s SET renew_at = ${p.until} FROM unnest(${p.keyIds}, ${p.fingerprints}) AS n(key_id, fingerprint)
      WHERE s.key_id = n.key_id AND s.fingerprint = n.fingerprint AND s.renew_at IS NOT NULL RETURNING 1)
    SELECT count(*)::int AS count FROM moved`,
})
