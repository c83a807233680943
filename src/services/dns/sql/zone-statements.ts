// Whole zones in SQL: read in pages, written in parts, and the lock of large imports.
import { selected } from '../../../platform/database/columns.ts'
import {
  boolean,
  int4,
  int8,
  type JsonText,
  jsonb,
  optional,
  statement,
  text,
  textArray,
} from '../../../platform/database/statement.ts'
import { eventsIn, insertEventsOf } from '../../events/index.ts'
import { ownedZone, ownedZoneIn, shownRecord } from './statements.ts'

const zoneOut = {
  id: text(),
  projectId: text(),
  name: text(),
  serial: int4(),
  nameservers: textArray(),
  records: int4(),
}
const zoneColumns = `
  d.id, d.project_id AS "projectId", d.name, d.serial, COALESCE(d.nameservers, '{}') AS nameservers, d.records`

export const selectZone = statement('dns.zone', {
  reason: 'connection without Prisma',
  in: ownedZoneIn,
  out: zoneOut,
  sql: (p) => `SELECT ${zoneColumns} FROM domain d WHERE ${ownedZone(p)}`,
})

/** The zone, locked against other changes of its records until the transaction ends. */
export const selectZoneToChange = statement('dns.zone-to-change', {
  reason: 'row lock',
  in: ownedZoneIn,
  out: zoneOut,
  sql: (p) => `SELECT ${zoneColumns} FROM domain d WHERE ${ownedZone(p)} FOR NO KEY UPDATE`,
})

export const selectRecordLimits = statement('dns.record-limits', {
  reason: 'function of the database',
  in: { accountId: text() },
  out: { recordsPerZone: optional(int8()), recordsPerSet: optional(int8()), bytesPerSet: optional(int8()) },
  sql: (p) => `
    SELECT account_limit(${p.accountId}, 'recordsPerZone') AS "recordsPerZone",
      account_limit(${p.accountId}, 'recordsPerSet') AS "recordsPerSet",
      account_limit(${p.accountId}, 'bytesPerSet') AS "bytesPerSet"`,
})

const recordColumns = selected(shownRecord, 'r')

/** Records of a zone by their ids; a list is one parameter, where Prisma has one for each item. */
export const selectRecordsById = statement('dns.records-by-id', {
  reason: 'list as one parameter',
  in: { zoneId: text(), ids: textArray() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${recordColumns} FROM dns_record r WHERE r.domain_id = ${p.zoneId} AND r.id = ANY(${p.ids})
    ORDER BY r.name, r.id`,
})

/** All records of a zone at these names. */
export const selectRecordsByName = statement('dns.records-by-name', {
  reason: 'list as one parameter',
  in: { zoneId: text(), names: textArray() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${recordColumns} FROM dns_record r WHERE r.domain_id = ${p.zoneId} AND r.name = ANY(${p.names})
    ORDER BY r.name, r.id`,
})

/** The MX records of a zone that point at one of these hosts. */
export const selectRecordsPointing = statement('dns.records-pointing', {
  reason: 'list as one parameter',
  in: { zoneId: text(), hosts: textArray() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${recordColumns} FROM dns_record r
    WHERE r.domain_id = ${p.zoneId} AND r.type = 'MX' AND split_part(r.value, ' ', 2) = ANY(${p.hosts})
    ORDER BY r.name, r.id`,
})

/** The NS records of a zone that name one of these hosts. */
export const selectNameserversNamed = statement('dns.nameservers-named', {
  reason: 'list as one parameter',
  in: { zoneId: text(), hosts: textArray() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${recordColumns} FROM dns_record r
    WHERE r.domain_id = ${p.zoneId} AND r.type = 'NS' AND r.value = ANY(${p.hosts}) ORDER BY r.name, r.id`,
})

/** The first records of a zone below one of these names. */
export const selectRecordsBelow = statement('dns.records-below', {
  reason: 'expression of columns',
  in: { zoneId: text(), above: textArray() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${recordColumns} FROM dns_record r
    WHERE r.domain_id = ${p.zoneId} AND EXISTS (SELECT 1 FROM unnest(${p.above}) a(name)
      WHERE (a.name = '@' AND r.name <> '@') OR right(r.name, length(a.name) + 1) = '.' || a.name)
    ORDER BY r.name, r.id LIMIT 100`,
})

/** The next records of a zone by name and id. */
export const selectRecordPage = statement('dns.record-page', {
  reason: 'comparison of rows',
  in: { zoneId: text(), afterName: text(), afterId: text(), limit: int4() },
  out: shownRecord,
  sql: (p) => `
    SELECT ${recordColumns} FROM dns_record r
    WHERE r.domain_id = ${p.zoneId} AND (r.name, r.id) > (${p.afterName}, ${p.afterId})
    ORDER BY r.name, r.id LIMIT ${p.limit}`,
})

export const deleteRecordRows = statement('dns.delete-records', {
  reason: 'list as one parameter',
  in: { zoneId: text(), ids: textArray() },
  out: { count: int4() },
  sql: (p) => `
    WITH gone AS (DELETE FROM dns_record WHERE domain_id = ${p.zoneId} AND id = ANY(${p.ids}) RETURNING 1)
    SELECT count(*)::int AS count FROM gone`,
})

/** Deletes some of what a deleted domain, or a deleted key, has left. */
export const purgeZoneRows = statement('dns.purge-zone', {
  reason: 'function of the database',
  in: { ownerId: text(), limit: int4() },
  out: { count: int4() },
  sql: (p) => `SELECT purge_zone(${p.ownerId}, ${p.limit}) AS count`,
})

/** New ttls and comments, the only things about a record that an import changes. */
export const updateRecordRows = statement('dns.update-records', {
  reason: 'list as one parameter',
  in: { zoneId: text(), records: jsonb<readonly object[] | JsonText>() },
  out: { count: int4() },
  sql: (p) => `
    WITH changed AS (
      UPDATE dns_record r SET ttl = u.ttl, comment = u.comment, updated_at = u."updatedAt"
      FROM jsonb_to_recordset(${p.records}) AS u(id text, ttl int, comment text, "updatedAt" timestamptz)
      WHERE r.domain_id = ${p.zoneId} AND r.id = u.id RETURNING 1)
    SELECT count(*)::int AS count FROM changed`,
})

/** The end of a change: the zone's next serial, and what the log says of it. */
export const growSerialWithEvents = statement('dns.grow-serial-with-events', {
  reason: 'change with its event and job',
  in: { zoneId: text(), ...eventsIn },
  out: { serial: int4() },
  sql: (p) => `
    WITH logged AS (${insertEventsOf(p)})
    UPDATE domain SET serial = serial + 1 WHERE id = ${p.zoneId} RETURNING serial`,
})

const importKey = (accountId: string) => `hashtextextended('zone import ' || ${accountId}, 0)`

/** Held by the connection until it is released or closed, also by a crash, and over all processes. */
export const tryLockImports = statement('dns.lock-imports', {
  reason: 'lease',
  in: { accountId: text() },
  out: { held: boolean() },
  sql: (p) => `SELECT pg_try_advisory_lock(${importKey(p.accountId)}) AS held`,
})

export const unlockImports = statement('dns.unlock-imports', {
  reason: 'lease',
  in: { accountId: text() },
  out: { released: boolean() },
  sql: (p) => `SELECT pg_advisory_unlock(${importKey(p.accountId)}) AS released`,
})
