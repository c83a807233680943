// The zones that the nameservers answer for, as their snapshot reads them.
import type { Db } from '../../platform/database.ts'
import type { PlatformZones } from './platform-zones.ts'
import { readPlatformZoneRows, readZoneStates, readZones } from './statements.ts'

export { aliasedType } from './alias-statements.ts'
export { challengeType } from './statements.ts'

/** Of several claims to one name, the one that is served; `refused` if its account is suspended so that none is. */
export type ServedZoneState = { name: string; id: string; serial: number; verified: boolean; refused: boolean }

/**
 * `records` has one per line: type, ttl, name and value with a blank between; no value has a line break in it.
 * `nameservers` are those of the claim; empty for the first two of the pool, which the platform's own zones have.
 */
export type ServedZoneRow = ServedZoneState & {
  accountId: string
  nameservers?: readonly string[]
  records: string
}

/** The next `limit` zones of customers by name, without their records: enough to see what changed. */
export function readServedStates(
  db: Db,
  platform: PlatformZones,
  after: string,
  limit: number,
): Promise<ServedZoneState[]> {
  return readZoneStates(db, { after, except: [...platform.keys()], limit })
}

/** Zones by name, each with all its records from one moment. What does not come back is not served. */
export async function readServedZones(db: Db, platform: PlatformZones, names: string[]): Promise<ServedZoneRow[]> {
  const own = names.filter((name) => platform.has(name))
  const found = await readZones(db, { names: names.filter((name) => !platform.has(name)) })
  return own.length === 0 ? found : [...found, ...(await readPlatformZones(db, platform, own))]
}

/** What ids of the platform's own zones begin with; those of domains never do. */
export const platformIds = 'platform '

/** The platform's own zones come before any claim to their names, and belong to no account. */
async function readPlatformZones(db: Db, platform: PlatformZones, names: string[]): Promise<ServedZoneRow[]> {
  const found = await readPlatformZoneRows(db, { names })
  return found.map(({ name, serial, challenges }) => {
    const { verified, records } = platform.get(name)!
    const lines = challenges === null ? records : [...records, challenges]
    const source = { name, id: platformIds + name, serial, verified, refused: false, accountId: '' }
    return { ...source, records: lines.join('\n') }
  })
}
