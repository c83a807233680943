// Reads the zones that the nameservers serve, for their snapshot.
import { type Database, type Db, onConnection, transactionOn } from '../../../platform/database/database.ts'
import { signalLines } from '../sql/signals.ts'
import type { ServedSigning } from '../sql/signature-statements.ts'
import { readPlatformZoneRows, readZoneChanges, readZonePage, readZoneStates, readZones } from '../sql/statements.ts'
import type { PlatformZones } from './platform-zones.ts'

export { aliasedType } from '../sql/alias-statements.ts'
export type { ServedSigning } from '../sql/signature-statements.ts'
export { challengeType } from '../sql/statements.ts'

/** The served one of several claims to a name; `refused` if a suspension of its account includes DNS. */
export type ServedZoneState = { name: string; id: string; serial: number; verified: boolean; refused: boolean }

type ServedZone = ServedZoneState & {
  accountId: string
  /** Null for an unsigned zone. */
  signing?: ServedSigning | null
  /** Signatures of this version or later stay in use while their sets are unchanged; undefined if unknown. */
  signaturesSince?: number
  /** The nameservers of the claim; empty means the first two of the pool. */
  nameservers?: readonly string[]
}

/** `records` has one record per line: type, TTL, name and value, separated by spaces. Values contain no line breaks. */
export type ServedZoneRow = ServedZone & { records: string }

/** The changes since a version: changed names with their current lines, and all extras, such as challenges. */
export type ServedZoneChange = ServedZone & { names: readonly string[]; records: string }

/** `large`: zones with too many records or changes to read at once; read each with `readLargeZone`. */
export type ReadResult<Row> = { rows: Row[]; large: string[] }

/** The next `limit` zones of customers by name, without records, which is enough to detect changes. */
export function readServedStates(
  db: Db,
  platform: PlatformZones,
  after: string,
  limit: number,
): Promise<ServedZoneState[]> {
  return readZoneStates(db, { after, except: [...platform.keys()], limit })
}

/** Reads zones by name, each with a consistent set of records. Missing zones are not served. */
export async function readServedZones(
  db: Db,
  platform: PlatformZones,
  names: readonly string[],
): Promise<ReadResult<ServedZoneRow>> {
  const own = names.filter((name) => platform.has(name))
  const others = names.filter((name) => !platform.has(name))
  const read: ReadResult<ServedZoneRow> = { rows: [], large: [] }
  for (const { records, extras, ...row } of others.length === 0 ? [] : await readZones(db, { names: others })) {
    if (records === null) read.large.push(row.name)
    else read.rows.push({ ...row, records: linesOf(records, extras) })
  }
  if (own.length > 0) read.rows.push(...(await readPlatformZones(db, platform, own)))
  return read
}

/** Reads changes of zones since known versions. Missing zones are not served. */
export async function readServedChanges(
  db: Db,
  known: readonly { name: string; id: string; serial: number }[],
): Promise<ReadResult<ServedZoneChange>> {
  const read: ReadResult<ServedZoneChange> = { rows: [], large: [] }
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

// About ten milliseconds of work for the database.
const pageSize = 2_000

/**
 * Reads a consistent zone of a customer; null if it is not served. Passes its records to `onText` in parts, with
 * `records` null, unless the zone is no longer large.
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
        const [page] = await readZonePage(connection, { zoneId: row.id, afterName, afterId, limit: pageSize })
        if (page!.records !== null) onText(page!.records)
        more = page!.count === pageSize
        afterName = page!.lastName ?? ''
        afterId = page!.lastId ?? ''
      }
      return { ...row, records }
    }
    return transactionOn(connection, read, 'ISOLATION LEVEL REPEATABLE READ READ ONLY')
  })
}

/** Reads a consistent zone of any size with all records; null if it is not served. */
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

/** The prefix of ids of the platform's own zones; ids of domains never have it. */
export const platformIds = 'platform '

/** The platform's own zones take precedence over claims to their names, and belong to no account. */
async function readPlatformZones(db: Db, platform: PlatformZones, names: string[]): Promise<ServedZoneRow[]> {
  const found = await readPlatformZoneRows(db, { names })
  return found.map(({ name, serial, challenges, signing: keys, signals }) => {
    const { verified, records, nameservers } = platform.get(name)!
    // The keys belong to the deployments' domain; zones of nameservers' names exist only in development.
    const signing = verified ? keys : null
    const signalled = signing && signals ? signalLines(name, nameservers, signals) : []
    const lines = [...records, ...(challenges === null ? [] : [challenges]), ...signalled]
    const source = { name, id: platformIds + name, serial, verified, refused: false, accountId: '', signing }
    return { ...source, records: lines.join('\n') }
  })
}
