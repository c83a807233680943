// The zones that the nameservers answer for, as their snapshot reads them.
import { type Database, type Db, onConnection, transactionOn } from '../../../platform/database/database.ts'
import { signalLines } from '../sql/signals.ts'
import type { ServedSigning } from '../sql/signature-statements.ts'
import { readPlatformZoneRows, readZoneChanges, readZonePage, readZoneStates, readZones } from '../sql/statements.ts'
import type { PlatformZones } from './platform-zones.ts'

export { aliasedType } from '../sql/alias-statements.ts'
export type { ServedSigning } from '../sql/signature-statements.ts'
export { challengeType } from '../sql/statements.ts'

/** Of several claims to one name, the one that is served; `refused` if its account is suspended so that none is. */
export type ServedZoneState = { name: string; id: string; serial: number; verified: boolean; refused: boolean }

type ServedZone = ServedZoneState & {
  accountId: string
  /** Null for a zone that is not signed. */
  signing?: ServedSigning | null
  /** Signatures of this version or a later one are in use as long as their sets stay; without it, that is not known. */
  signaturesSince?: number
  /** Those of the claim; empty for the first two of the pool, which the platform's own zones have. */
  nameservers?: readonly string[]
}

/** `records` has one per line: type, ttl, name and value with a blank between; no value has a line break in it. */
export type ServedZoneRow = ServedZone & { records: string }

/** What changed since a version: names, the lines that these have now, and all extras, such as challenges. */
export type ServedZoneChange = ServedZone & { names: readonly string[]; records: string }

/** Zones that have too many records to be read at once, or too many changes: `readLargeZone` reads each by itself. */
export type Read<Row> = { rows: Row[]; large: string[] }

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
export async function readServedZones(
  db: Db,
  platform: PlatformZones,
  names: readonly string[],
): Promise<Read<ServedZoneRow>> {
  const own = names.filter((name) => platform.has(name))
  const others = names.filter((name) => !platform.has(name))
  const read: Read<ServedZoneRow> = { rows: [], large: [] }
  for (const { records, extras, ...row } of others.length === 0 ? [] : await readZones(db, { names: others })) {
    if (records === null) read.large.push(row.name)
    else read.rows.push({ ...row, records: linesOf(records, extras) })
  }
  if (own.length > 0) read.rows.push(...(await readPlatformZones(db, platform, own)))
  return read
}

/** Changes of zones since the versions that are known. What does not come back is not served. */
export async function readServedChanges(
  db: Db,
  known: readonly { name: string; id: string; serial: number }[],
): Promise<Read<ServedZoneChange>> {
  const read: Read<ServedZoneChange> = { rows: [], large: [] }
  if (known.length === 0) return read
  const [names, ids] = [known.map(({ name }) => name), known.map(({ id }) => id)]
  const found = await readZoneChanges(db, { names, ids, serials: known.map(({ serial }) => serial) })
  for (const { changed, records, extras, ...row } of found) {
    if (changed === null) read.large.push(row.name)
    else read.rows.push({ ...row, names: changed, records: linesOf(records, extras) })
  }
  return read
}

const linesOf = (...parts: (string | null)[]) => parts.filter((part) => part !== null && part !== '').join('\n')

// Some ten milliseconds of the database, and some of the reader.
const recordsInAPage = 2_000

/**
 * One zone of a customer, of one moment; null if it is not served. Its records come to `onText`, some lines at a time, and
 * `records` is null, unless it is not large any more.
 */
export function readLargeZone(
  db: Database,
  name: string,
  onText: (text: string) => void,
): Promise<(ServedZone & { records: string | null }) | null> {
  return onConnection(db, (connection) => {
    const read = async () => {
      const [found] = await readZones(connection, { names: [name] })
      if (!found) return null
      const { records, extras, ...row } = found
      if (records !== null) return { ...row, records: linesOf(records, extras) }
      if (extras !== null) onText(extras)
      for (let [afterName, afterId, more] = ['', '', true]; more; ) {
        const [page] = await readZonePage(connection, { zoneId: row.id, afterName, afterId, limit: recordsInAPage })
        if (page!.records !== null) onText(page!.records)
        more = page!.count === recordsInAPage
        afterName = page!.lastName ?? ''
        afterId = page!.lastId ?? ''
      }
      return { ...row, records }
    }
    return transactionOn(connection, read, 'ISOLATION LEVEL REPEATABLE READ READ ONLY')
  })
}

/** One zone of any size with all its records, of one moment; null if it is not served. */
export async function readServedZone(
  db: Database,
  platform: PlatformZones,
  name: string,
): Promise<ServedZoneRow | null> {
  if (platform.has(name)) return (await readPlatformZones(db, platform, [name]))[0] ?? null
  const texts: string[] = []
  const row = await readLargeZone(db, name, (text) => texts.push(text))
  return row && { ...row, records: row.records ?? texts.join('\n') }
}

/** What ids of the platform's own zones begin with; those of domains never do. */
export const platformIds = 'platform '

/** The platform's own zones come before any claim to their names, and belong to no account. */
async function readPlatformZones(db: Db, platform: PlatformZones, names: string[]): Promise<ServedZoneRow[]> {
  const found = await readPlatformZoneRows(db, { names })
  return found.map(({ name, serial, challenges, signing: keys, signals }) => {
    const { verified, records, nameservers } = platform.get(name)!
    // The keys are those of the domain of deployments; the zones of nameservers' names are for development alone.
    const signing = verified ? keys : null
    const signalled = signing && signals ? signalLines(name, nameservers, signals) : []
    const lines = [...records, ...(challenges === null ? [] : [challenges]), ...signalled]
    const source = { name, id: platformIds + name, serial, verified, refused: false, accountId: '', signing }
    return { ...source, records: lines.join('\n') }
  })
}
