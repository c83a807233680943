// Keeps the zones in sync with the database: compares all at startup and after an outage, otherwise reads them by name.
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import { follow } from '../../../platform/database/mirror.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import {
  announcePlatformZones,
  type PlatformZones,
  platformIds,
  readServedChanges,
  readServedStates,
  readServedZones,
} from '../../../services/dns/index.ts'
import { startRenewal } from '../dnssec/renewal.ts'
import { createSigner } from '../dnssec/signer.ts'
import { createVersions } from '../dnssec/versions.ts'
import type { OutsideAddresses } from '../zones/lookup.ts'
import type { SavedRow } from '../zones/saved-rows.ts'
import type { ZoneConstants } from '../zones/zone.ts'
import { RecordsByName } from '../zones/zone-records.ts'
import { joinedRows, ZoneTable } from '../zones/zone-table.ts'
import { createLargeZones } from './large-zones.ts'

export type Snapshot = {
  readonly table: ZoneTable
  /** Renews some due signatures, as also happens periodically. Returns how many it checked. */
  renewSignatures(): Promise<number>
  /** Calls `listener` with the names of zones that were added, removed or changed, after the change is in effect. */
  onChange(listener: (names: readonly string[]) => void): () => void
  /** Calls `listener` when a name may have moved from one zone to another. */
  onMoved(listener: () => void): () => void
  /** How long the zones may have differed from the database; 0 while they are in sync. */
  ageSeconds(): number
  close(): Promise<void>
}

const statesAtOnce = 20_000
// A thousand zones of ten records are some 700 KB, and take 20 ms to read.
const zonesAtOnce = 1_000

function listeners<T extends unknown[]>() {
  const all = new Set<(...args: T) => void>()
  return {
    add(listener: (...args: T) => void) {
      all.add(listener)
      return () => void all.delete(listener)
    },
    emit(...args: T) {
      for (const listener of all) listener(...args)
    },
  }
}

export type SnapshotOptions = {
  db: Database
  notifications: Notifications
  /** The platform's own zones. */
  platform: PlatformZones
  constants: ZoneConstants
  /** Addresses from outside the zones: those of an ALIAS are signed. */
  outside: OutsideAddresses
  log: Logger
  /** Opens the keys of signed zones; without it, only what others have signed is served. */
  vault?: Vault | undefined
  /** Where the zones are saved, for a start without the database. */
  snapshots?: Snapshots | undefined
}

export async function createSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { db, notifications, platform, constants, log } = options
  const changes = listeners<[names: readonly string[]]>()
  const moves = listeners<[]>()
  const table = new ZoneTable(constants, () => moves.emit())
  const { vault = null, outside } = options
  const signer = createSigner({ db, vault })
  const versions = createVersions({
    signer,
    outside,
    served: (name) => table.get(name),
    draft: (row) => table.draft(row),
  })
  let staleSinceMs: number | null = Date.now()
  let behind = true
  let changedAgain = (_name: string) => {}
  let announced = false
  const saved = options.snapshots?.open('zones', () => table.rows())

  /** The zones that differ: every change increases the serial, so names, ids and serials are enough. */
  async function compare(): Promise<Set<string>> {
    if (!announced) await announcePlatformZones(db, platform)
    announced = true
    // Names that remain at the end were deleted from the database, except for the platform's own zones.
    const differing = new Set([...table.names(), ...platform.keys()])
    for (let after = ''; ; ) {
      const states = await readServedStates(db, platform, after, statesAtOnce)
      for (const state of states) {
        if (table.isCurrent(state)) differing.delete(state.name)
        else differing.add(state.name)
      }
      if (states.length < statesAtOnce) return differing
      after = states.at(-1)!.name
    }
  }

  async function read(names: string[]): Promise<void> {
    const known: { name: string; id: string; serial: number }[] = []
    const others: string[] = []
    for (const name of names) {
      if (large.add(name, 'again')) continue
      const source = table.get(name)
      // Changes of the platform's own zones are not recorded.
      if (source?.records instanceof RecordsByName && !platform.has(name)) known.push(source)
      else others.push(name)
    }
    const changed = await readServedChanges(db, known)
    const zones = await readServedZones(db, platform, others)
    const grown = await versions.completeChanges(table.changed(changed.rows))
    const whole = await versions.completeSome(zones.rows)
    // Large zones are read in the background, so that the others needn't wait.
    const background = new Set([...changed.large, ...zones.large, ...grown.others, ...whole.others])
    for (const name of background) large.add(name)
    for (const { name } of changed.rows) background.add(name)
    const requested = [...others, ...known.map(({ name }) => name)].filter((name) => !background.has(name))
    const applied = [...table.change(grown.rows), ...table.apply(requested, whole.rows)]
    announceChanges(applied, [...grown.rows, ...whole.rows])
  }

  function announceChanges(changed: string[], rows: readonly { refused: boolean }[]): void {
    if (changed.length === 0) return
    changes.emit(changed)
    // A refused zone must stay refused if the next start is without the database.
    saved?.changed(rows.some(({ refused }) => refused))
  }

  const large = createLargeZones({
    db,
    platform,
    log,
    complete: versions.completeAlone,
    onRead: (name, row) => announceChanges(table.apply([name], row ? [row] : []), row ? [row] : []),
    onChanged: (name) => changedAgain(name),
    onIdle: settle,
  })

  /** Called when the reader of zones or that of large zones is done. */
  function settle(): void {
    if (behind || large.size > 0) return
    if (notifications.connected) staleSinceMs = null
    saved?.current()
  }

  function restore(rows: SavedRow[], at: Date): void {
    const known = rows.flatMap((row) => {
      // Signed zones stay as they are, because nothing can be signed now.
      if (!row.id.startsWith(platformIds) || row.signing) return [row]
      // The platform's zones are built from the current configuration.
      const own = platform.get(row.name)
      return own ? [{ ...row, verified: own.verified, records: own.records.join('\n') }] : []
    })
    table.apply([], joinedRows(known))
    staleSinceMs = at.getTime()
  }

  const offLost = notifications.on('lost', () => {
    staleSinceMs ??= Date.now()
  })
  const source = {
    what: 'zones',
    // A wildcard is a name in its parent's zone and has no zone of its own.
    listen(changed: (name: string) => void) {
      changedAgain = changed
      return notifications.on('zone', (name) => void (name.startsWith('*') || changed(name)))
    },
    compare,
    read,
    maxNames: zonesAtOnce,
    onBehind() {
      behind = true
      staleSinceMs ??= Date.now()
    },
    onCurrent() {
      behind = false
      settle()
    },
    ...(saved && { restore: () => saved.restore(restore) }),
  }
  const followed = await follow(source, notifications, log).catch((error) => {
    offLost()
    large.close()
    throw error
  })
  await large.settled()
  const renewal = vault ? startRenewal({ db, table, signer, outside, log }) : null

  async function close(): Promise<void> {
    offLost()
    await renewal?.close()
    await followed.close()
    await large.close()
    await saved?.close()
  }

  return {
    table,
    renewSignatures: async () => (await renewal?.run()) ?? 0,
    onChange: changes.add,
    onMoved: moves.add,
    ageSeconds: () => (staleSinceMs === null ? 0 : (Date.now() - staleSinceMs) / 1000),
    close,
  }
}
