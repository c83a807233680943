// Which zones the nameservers answer for: the queries behind their snapshot.
import { type Db, rows, sql } from '../db.ts'

/** Of several claims to one name the verified one counts, and until there is one, the oldest. */
export type ServedZoneState = { name: string; id: string; serial: number; verified: boolean }

/** `records` has one per line: type, ttl, name and value with a blank between; no value has a line break in it. */
export type ServedZoneRow = ServedZoneState & { accountId: string; records: string | null }

// Ids are in the order of creation by their octets, whatever the collation of the database.
const claimOrder = sql`d.verified DESC, d.id COLLATE "C"`

/** The next `limit` zones by name, without their records: enough to see what changed. */
export function readServedStates(db: Db, after: string, limit: number): Promise<ServedZoneState[]> {
  return rows<ServedZoneState>(
    db,
    sql`SELECT DISTINCT ON (d.name) d.name, d.id, d.serial, d.verified FROM domain d
        WHERE d.name > ${after} AND d.name NOT LIKE '*%' ORDER BY d.name, ${claimOrder} LIMIT ${limit}::int`,
  )
}

/** Zones by name, each with all its records from one moment. What does not come back is not served. */
export function readServedZones(db: Db, names: string[]): Promise<ServedZoneRow[]> {
  return rows<ServedZoneRow>(
    db,
    sql`SELECT z.*, (
          SELECT string_agg(concat_ws(' ', r.type, r.ttl, r.name, r.value), E'\n' ORDER BY r.name, r.id)
          FROM dns_record r WHERE r.domain_id = z.id) AS records
        FROM (
          SELECT DISTINCT ON (d.name) d.name, d.id, d.serial, d.verified, d.account_id AS "accountId" FROM domain d
          WHERE d.name = ANY(${names}::text[]) AND d.name NOT LIKE '*%' ORDER BY d.name, ${claimOrder}) z`,
  )
}
