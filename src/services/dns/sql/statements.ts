// Zones and records in SQL.
import type { RecordType } from '../../../dns/record-types.ts'
import { columnsOf, inserted, insertedFrom, omit, selected } from '../../../platform/database/columns.ts'
import {
  boolean,
  int4,
  int4Array,
  type JsonText,
  json,
  jsonb,
  optional,
  statement,
  text,
  textArray,
} from '../../../platform/database/statement.ts'
import { eventIn, insertEvent } from '../../events/index.ts'
import { aliasLines } from './alias-statements.ts'
import type { Signal } from './signals.ts'
import { platformSigning, type ServedSigning } from './signature-statements.ts'

/**
 * Whether the nameservers answer with the records of a claim. A proved one always; one of its first 30 days while no
 * other account has, or ever had, a claim to the name or one above it: its delegation may be there, whoever it is for.
 * The same with names below, except those that somebody has proved, because these have a zone of their own. The functions
 * zone_cuts and served_zones have the same rule.
 */
const isServed = `(d.verified OR (d.unproved_since > now() - interval '30 days'
  AND NOT EXISTS (SELECT 1 FROM domain_claim c
    WHERE c.name = ANY(names_at_and_above(d.name)) AND c.account_id <> d.account_id)
  AND NOT EXISTS (SELECT 1 FROM domain_claim_above c WHERE c.above = d.name AND c.account_id <> d.account_id
    AND NOT EXISTS (SELECT 1 FROM domain o WHERE o.name = c.name AND o.verified))))`

/** The claim to a name that the nameservers serve. */
export const findServedClaim = statement('dns.served-claim', {
  reason: 'subquery',
  in: { name: text() },
  out: { id: text() },
  sql: (p) => `SELECT d.id FROM domain d WHERE d.name = ${p.name} AND ${isServed} ORDER BY d.verified DESC LIMIT 1`,
})

/** Which of these names have a zone that the nameservers serve. */
export const findServedNames = statement('dns.served-names', {
  reason: 'subquery',
  in: { names: textArray() },
  out: { name: text() },
  sql: (p) => `SELECT DISTINCT d.name FROM domain d
    WHERE d.name = ANY(${p.names}) AND d.name NOT LIKE '*%' AND ${isServed}`,
})

/** Locks the records of a zone against other changes until the transaction ends. */
export const lockZone = statement('dns.lock-zone', {
  reason: 'row lock',
  in: { accountId: text(), name: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM domain WHERE account_id = ${p.accountId} AND name = ${p.name} FOR NO KEY UPDATE`,
})

export const ownedZone = (p: { zone: string; accountId: string; projectIds: string }) => `
  d.name = ${p.zone} AND d.account_id = ${p.accountId}
    AND (${p.projectIds} IS NULL OR d.project_id = ANY(${p.projectIds}))`

export const ownedZoneIn = { zone: text(), accountId: text(), projectIds: optional(textArray()) }

const record = columnsOf<'DnsRecord', { type: RecordType }>('DnsRecord')
/** What is shown of a record; its zone is known. */
export const shownRecord = omit(record, ['domainId'])

/** The records after a name and id; after two empty texts, those of the first page. */
export const listRecordRows = statement('dns.list-records', {
  reason: 'hot read',
  in: { ...ownedZoneIn, afterName: text(), afterId: text(), limit: int4() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${selected(shownRecord, 'r')}
    FROM dns_record r
    WHERE r.domain_id = (SELECT d.id FROM domain d WHERE ${ownedZone(p)})
      AND (r.name, r.id) > (${p.afterName}, ${p.afterId})
    ORDER BY r.name, r.id LIMIT ${p.limit}`,
})

// The project of the event is that of the zone, which only the statement knows.
const { eventProject, ...recordEventIn } = eventIn

/**
 * Lock, check, record, serial and event. The serial grows only with a record. A record that another request commits
 * while this statement waits for the lock is not in its snapshot; the trigger and the unique index of the table see it.
 * The serial is found by a sub-select: joined with `made`, a large zone made the planner read all domains.
 */
export const createRecordRows = statement('dns.create-record', {
  reason: 'change with its event and job',
  in: {
    ...ownedZoneIn,
    ...shownRecord,
    /** Types of which no record may be at the same name. */
    excludedTypes: textArray(),
    /** Names above it, at which no DNAME record may be. */
    above: textArray(),
    ...recordEventIn,
  },
  /** The id of the new record, or the record that it conflicts with; no row if there is no zone. */
  out: {
    madeId: optional(text()),
    id: optional(text()),
    type: optional(text()),
    name: optional(text()),
    value: optional(text()),
  },
  sql: (p) => `
    WITH zone AS (SELECT d.id, d.project_id FROM domain d WHERE ${ownedZone(p)} FOR NO KEY UPDATE),
    other AS (
      (SELECT r.id, r.type, r.name, r.value FROM dns_record r JOIN zone ON r.domain_id = zone.id
        WHERE r.name = ${p.name}
          AND (r.type = ANY(${p.excludedTypes}) OR (r.type = ${p.type} AND r.value = ${p.value}))
        ORDER BY r.type = ${p.type} AND r.value = ${p.value} DESC LIMIT 1)
      UNION ALL
      (SELECT r.id, r.type, r.name, r.value FROM dns_record r JOIN zone ON r.domain_id = zone.id
        WHERE r.type = 'DNAME' AND r.name = ANY(${p.above}) LIMIT 1)
      LIMIT 1),
    made AS (
      INSERT INTO dns_record ${inserted(record, { ...p, domainId: 'zone.id' })}
      FROM zone WHERE NOT EXISTS (SELECT 1 FROM other) ON CONFLICT DO NOTHING RETURNING id, domain_id),
    grown AS (UPDATE domain SET serial = serial + 1 WHERE id = (SELECT domain_id FROM made)),
    logged AS (${insertEvent({ ...p, eventProject: '(SELECT project_id FROM zone)' }, 'made')})
    SELECT made.id AS "madeId", other.id, other.type, other.name, other.value
    FROM zone LEFT JOIN made ON true LEFT JOIN other ON true`,
})

/**
 * Many records as one parameter. Prisma has one parameter for each value, which takes six times as long (9 s against
 * 1.5 s for 10,000 records measured).
 */
export const insertRecordRows = statement('dns.insert-records', {
  reason: 'list as one parameter',
  in: { zoneId: text(), records: jsonb<readonly object[] | JsonText>() },
  out: { count: int4() },
  sql: (p) => `
    WITH made AS (
      INSERT INTO dns_record ${insertedFrom(record, `jsonb_to_recordset(${p.records})`, { domainId: p.zoneId })}
      RETURNING 1)
    SELECT count(*)::int AS count FROM made`,
})

/** The next zones of customers by name, without their records: enough to see what changed. */
export const readZoneStates = statement('dns.zone-states', {
  reason: 'snapshot for an engine',
  in: { after: text(), except: textArray(), limit: int4() },
  out: { name: text(), id: text(), serial: int4(), verified: boolean(), refused: boolean() },
  sql: (p) => `
    SELECT DISTINCT ON (d.name) d.name, d.id, d.serial, d.verified, a.refuses_dns AS refused
    FROM domain d JOIN account a ON a.id = d.account_id
    WHERE d.name > ${p.after} AND d.name NOT LIKE '*%' AND d.name <> ALL(${p.except}) AND ${isServed}
    ORDER BY d.name, d.verified DESC LIMIT ${p.limit}`,
})

/**
 * The type, in a line of records, of a text that a certificate authority is about to ask for. It is not TXT: whoever
 * builds the zone adds it so that all other answers stay the same.
 */
export const challengeType = 'CHALLENGE'
// The authority asks once, so that the answer need not be cached.
const challengeTtl = 30

/** Null without any. Whoever writes or deletes a challenge increments the serial of its zone in one transaction. */
const challengesOf = (zone: string) => `(
  SELECT string_agg(DISTINCT concat_ws(' ', '${challengeType}', ${challengeTtl},
    '_acme-challenge' || left('.' || c.name, -length(c.zone) - 1), '"' || c.value || '"'), E'\\n')
  FROM acme_challenge c WHERE c.zone = ${zone} AND c.type = 'dns-01'
    AND right('.' || c.name, length(c.zone) + 1) = '.' || c.zone)`

const servedOut = {
  name: text(),
  id: text(),
  serial: int4(),
  verified: boolean(),
  refused: boolean(),
  accountId: text(),
  nameservers: textArray(),
  signing: optional(json<ServedSigning>()),
  signaturesSince: int4(),
}
const servedColumns = `z.name, z.id, z.serial, z.verified, z.refused, z.account_id AS "accountId",
  z.nameservers, z.signing, z.signatures_since AS "signaturesSince"`
const lineOfRecord = `concat_ws(E'\\n', concat_ws(' ', r.type, r.ttl, r.name, r.value),
  CASE WHEN r.type = 'ALIAS' THEN ${aliasLines('r.domain_id', 'r.name')} END)`
const linesOfRecords = `string_agg(${lineOfRecord}, E'\\n' ORDER BY r.name, r.id)`
/** Lines of a zone that are no records of it, few enough to be read with every change; null without any. */
const extrasOf = challengesOf('z.name')
/**
 * Delegations of a signed zone to the zones below it that are served here too, unless it has NS records for them itself:
 * without them, its proofs would deny what these answer. Null without any. The trigger domain_cut raises the serial.
 */
const cutsOf = (names = 'NULL') =>
  `CASE WHEN z.signing IS NOT NULL THEN zone_cuts(z.id, z.name, z.nameservers, ${names}) END`
// Some thousand records: a larger zone is read in pages, and its changes by name.
const maxAtOnce = 32_768

/** Zones of customers by name, each with all its records from one snapshot; null for those of a large one. */
export const readZones = statement('dns.zones', {
  reason: 'snapshot for an engine',
  in: { names: textArray() },
  out: { ...servedOut, records: optional(text()), extras: optional(text()) },
  sql: (p) => `
    SELECT ${servedColumns}, CASE WHEN z.record_bytes <= ${maxAtOnce} THEN COALESCE((
        SELECT ${linesOfRecords} FROM dns_record r WHERE r.domain_id = z.id), '') END AS records,
      NULLIF(concat_ws(E'\\n', ${extrasOf}, ${cutsOf()}), '') AS extras
    FROM served_zones(${p.names}) z`,
})

/** The next records of a zone by name and id; with the last of them, unless there are none. */
export const readZonePage = statement('dns.zone-page', {
  reason: 'snapshot for an engine',
  in: { zoneId: text(), afterName: text(), afterId: text(), limit: int4() },
  out: { count: int4(), lastName: optional(text()), lastId: optional(text()), records: optional(text()) },
  sql: (p) => `
    WITH page AS (
      SELECT r.domain_id, r.id, r.type, r.ttl, r.name, r.value FROM dns_record r
      WHERE r.domain_id = ${p.zoneId} AND (r.name, r.id) > (${p.afterName}, ${p.afterId})
      ORDER BY r.name, r.id LIMIT ${p.limit}),
    final AS (SELECT name, id FROM page ORDER BY name DESC, id DESC LIMIT 1)
    SELECT count(*)::int AS count, (SELECT name FROM final) AS "lastName", (SELECT id FROM final) AS "lastId",
      ${linesOfRecords} AS records
    FROM page r`,
})

/**
 * What changed since the versions that are known: the names, null if they are not known or too many, their records, and
 * all extras. LATERAL keeps every lookup on the index.
 */
export const readZoneChanges = statement('dns.zone-changes', {
  reason: 'snapshot for an engine',
  in: { names: textArray(), ids: textArray(), serials: int4Array() },
  out: { ...servedOut, changed: optional(textArray()), records: optional(text()), extras: optional(text()) },
  sql: (p) => `
    SELECT ${servedColumns}, g.names AS changed, NULLIF(concat_ws(E'\\n', (
        SELECT ${linesOfRecords} FROM unnest(g.names) n(name) CROSS JOIN LATERAL (
          SELECT r.domain_id, r.id, r.type, r.ttl, r.name, r.value FROM dns_record r
          WHERE r.domain_id = z.id AND r.name = n.name) r), ${cutsOf('g.names')}), '') AS records,
      ${extrasOf} AS extras
    FROM served_zones(${p.names}) z
    JOIN unnest(${p.names}, ${p.ids}, ${p.serials}) k(name, id, serial) ON k.name = z.name
    CROSS JOIN LATERAL (
      SELECT CASE WHEN k.id = z.id AND k.serial BETWEEN z.changes_since AND z.serial AND bool_and(n.name IS NOT NULL)
          IS NOT FALSE THEN COALESCE(array_agg(DISTINCT n.name), '{}') END AS names
      FROM zone_change g LEFT JOIN LATERAL unnest(g.names) n(name) ON true
      WHERE g.domain_id = z.id AND g.serial >= k.serial) g`,
})

// The newest of them: each makes four sets of the platform's zone, or more.
const maxSignals = 500
/** The zones that wait for their first DS, of nobody else either. Whatever changes them raises the serial of the platform's zones (signal_serial). */
const signals = `(
  SELECT json_agg(json_build_object('name', s.name, 'nameservers', s.nameservers, 'keys', s.keys) ORDER BY s.id) FROM (
    SELECT d.id, d.name, COALESCE(d.nameservers, '{}') AS nameservers, (
      SELECT json_agg(json_build_object('tag', k.tag, 'publicKey', translate(encode(k.public_key, 'base64'), E'\\n', ''))
        ORDER BY k.id) FROM zone_key k WHERE k.domain_id = d.id AND k.announced) AS keys
    FROM domain d WHERE d.dnssec_state = 'awaiting_ds' AND d.verified AND d.foreign_keys = '{}'
      ORDER BY d.id DESC LIMIT ${maxSignals}) s
  WHERE s.keys IS NOT NULL)`

/** Serials, challenges and signals of the platform's own zones; their records are in the configuration. */
export const readPlatformZoneRows = statement('dns.platform-zones', {
  reason: 'snapshot for an engine',
  in: { names: textArray() },
  out: {
    name: text(),
    serial: int4(),
    challenges: optional(text()),
    signing: optional(json<ServedSigning>()),
    signals: optional(json<Signal[]>()),
  },
  sql: (p) => `
    SELECT p.name, p.serial, ${challengesOf('p.name')} AS challenges,
      ${platformSigning} AS signing,
      CASE WHEN EXISTS (SELECT 1 FROM zone_key k WHERE k.domain_id IS NULL) THEN ${signals} END AS signals
    FROM platform_zone p
    WHERE p.name = ANY(${p.names})`,
})
