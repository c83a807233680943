// Which zones the nameservers answer for: the queries behind their snapshot.
import { type Db, rows, type Sql, sql } from '../db.ts'
import type { PlatformZones } from './platform-zones.ts'

/** Of several claims to one name the verified one counts, and until there is one, the oldest that is still looked at. */
export type ServedZoneState = { name: string; id: string; serial: number; verified: boolean }

/** `records` has one per line: type, ttl, name and value with a blank between; no value has a line break in it. */
export type ServedZoneRow = ServedZoneState & { accountId: string; records: string }

/**
 * The type, in a line of records, of a text that a certificate authority is about to ask for. It is not TXT, because it
 * must not change what the zone says otherwise, and only whoever builds the zone can see to that.
 */
export const challengeType = 'CHALLENGE'
// The authority asks once; nobody should remember the answer longer than the challenge lives.
const challengeTtl = 30

// Ids are in the order of creation by their octets, whatever the collation of the database. A claim that was not proved in
// 30 days makes way: who adds names that are not theirs must not wait for their owners for ever.
export const claimOrder = sql`d.verified DESC, d.next_check_at IS NULL, d.id COLLATE "C"`

/** Null without any. Whoever writes or deletes a challenge moves the serial of its zone in the same transaction. */
function challengesOf(zone: Sql): Sql {
  return sql`(
    SELECT string_agg(DISTINCT concat_ws(' ', ${challengeType}::text, ${challengeTtl}::int,
      '_acme-challenge' || left('.' || c.name, -length(c.zone) - 1), '"' || c.value || '"'), E'\n')
    FROM acme_challenge c WHERE c.zone = ${zone} AND c.type = 'dns-01'
      AND right('.' || c.name, length(c.zone) + 1) = '.' || c.zone)`
}

/** The next `limit` zones of customers by name, without their records: enough to see what changed. */
export function readServedStates(
  db: Db,
  platform: PlatformZones,
  after: string,
  limit: number,
): Promise<ServedZoneState[]> {
  return rows<ServedZoneState>(
    db,
    sql`SELECT DISTINCT ON (d.name) d.name, d.id, d.serial, d.verified FROM domain d
        WHERE d.name > ${after} AND d.name NOT LIKE '*%' AND d.name <> ALL(${[...platform.keys()]}::text[])
        ORDER BY d.name, ${claimOrder} LIMIT ${limit}::int`,
  )
}

/** Zones by name, each with all its records from one moment. What does not come back is not served. */
export async function readServedZones(db: Db, platform: PlatformZones, names: string[]): Promise<ServedZoneRow[]> {
  const own = names.filter((name) => platform.has(name))
  const found = await readClaimedZones(
    db,
    names.filter((name) => !platform.has(name)),
  )
  return own.length === 0 ? found : [...found, ...(await readPlatformZones(db, platform, own))]
}

function readClaimedZones(db: Db, names: string[]): Promise<ServedZoneRow[]> {
  return rows<ServedZoneRow>(
    db,
    sql`SELECT z.*, concat_ws(E'\n', (
          SELECT string_agg(concat_ws(' ', r.type, r.ttl, r.name, r.value), E'\n' ORDER BY r.name, r.id)
          FROM dns_record r WHERE r.domain_id = z.id), ${challengesOf(sql`z.name`)}) AS records
        FROM (
          SELECT DISTINCT ON (d.name) d.name, d.id, d.serial, d.verified, d.account_id AS "accountId" FROM domain d
          WHERE d.name = ANY(${names}::text[]) AND d.name NOT LIKE '*%' ORDER BY d.name, ${claimOrder}) z`,
  )
}

/** The platform's own zones come before any claim to their names, and belong to no account. */
async function readPlatformZones(db: Db, platform: PlatformZones, names: string[]): Promise<ServedZoneRow[]> {
  const found = await rows<{ name: string; serial: number; challenges: string | null }>(
    db,
    sql`SELECT p.name, p.serial, ${challengesOf(sql`p.name`)} AS challenges FROM platform_zone p
        WHERE p.name = ANY(${names}::text[])`,
  )
  return found.map(({ name, serial, challenges }) => {
    const { verified, records } = platform.get(name)!
    const lines = challenges === null ? records : [...records, challenges]
    return { name, id: `platform ${name}`, serial, verified, accountId: '', records: lines.join('\n') }
  })
}
