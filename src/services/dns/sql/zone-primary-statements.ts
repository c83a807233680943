// Zones that follow a primary, in SQL: what is to be looked at.
import { queueJobs } from '../../../jobs/statements.ts'
import { int8, optional, statement, text, timestamptz } from '../../../platform/database/statement.ts'

const followJob = `'follow', p.domain_id, jsonb_build_object('domainId', p.domain_id), now()`

/** Queues a look for a zone whose primary has this address; `address` ends in a colon, the port is not known. */
export const queueNotifiedZone = statement('dns.queue-notified-zone', {
  reason: 'INSERT … SELECT',
  in: { zone: text(), address: text() },
  out: { id: int8() },
  sql: (p) => `
    ${queueJobs(`SELECT ${followJob} FROM zone_primary p JOIN domain d ON d.id = p.domain_id
      WHERE d.name = ${p.zone} AND starts_with(p.address, ${p.address})`)}
    RETURNING id`,
})

/** Queues looks that are overdue, because their jobs were given up. */
export const queueOverdueZones = statement('dns.queue-overdue-zones', {
  reason: 'INSERT … SELECT',
  in: { before: timestamptz() },
  out: { id: int8() },
  sql: (p) => `${queueJobs(`SELECT ${followJob} FROM zone_primary p WHERE p.due_at < ${p.before}`)} RETURNING id`,
})

/**
 * In the transaction that takes a version over: its records may be written, if the zone still follows that primary and
 * has the version that was there before.
 */
export const allowFollowing = statement('dns.allow-following', {
  reason: 'function of the database',
  in: { zoneId: text(), address: text(), serial: optional(int8()) },
  out: { setting: text() },
  sql: (p) => `
    SELECT set_config('berth.follows', 'on', true) AS setting FROM zone_primary
    WHERE domain_id = ${p.zoneId} AND address = ${p.address} AND serial IS NOT DISTINCT FROM ${p.serial} FOR SHARE`,
})
