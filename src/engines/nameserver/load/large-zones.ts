// Reads large zones in the background, one at a time and page by page, and signs what takes long, so that neither the event
// loop nor changes of other zones have to wait.
import type { Logger } from 'pino'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import { type PlatformZones, readLargeZone, readServedZones } from '../../../services/dns/index.ts'
import type { ReadRow } from '../dnssec/versions.ts'
import { NameMap } from '../zones/name-map.ts'
import { emptyRecords } from '../zones/zone-records.ts'
import type { ZoneRow } from '../zones/zone-table.ts'

export type LargeZones = {
  /** Queues a zone to be read. With `again`, only notes a change of a zone that is already queued; false if it isn't. */
  add(name: string, again?: 'again'): boolean
  /** How many zones remain to be read. */
  readonly size: number
  /** Resolves when none remains, or one couldn't be read. */
  settled(): Promise<void>
  close(): Promise<void>
}

export type LargeZonesOptions = {
  db: Database
  platform: PlatformZones
  log: Logger
  /** Signs a zone that was read, if it is signed. */
  complete(row: ReadRow): Promise<ZoneRow>
  /** Called with a zone that was read; null if it isn't served. */
  onRead(name: string, row: ZoneRow | null): void
  /** Called after that if the zone changed while it was read, so that the change may be missing. */
  onChanged(name: string): void
  onIdle(): void
}

const retryMs = 1_000

export function createLargeZones(options: LargeZonesOptions): LargeZones {
  const { db, platform, log, complete, onRead, onChanged, onIdle } = options
  /** The zones to read, and whether each has changed since its reading began. */
  const pending = new Map<string, { changed: boolean }>()
  let running: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  let closed = false

  async function read(name: string): Promise<ZoneRow | null> {
    if (platform.has(name)) {
      const [own] = (await readServedZones(db, platform, [name])).rows
      return own ? complete(own) : null
    }
    const draft = emptyRecords(wireName(name), NameMap.large()).edit()
    const row = await readLargeZone(db, name, (text) => draft.add(text))
    return row && complete({ ...row, records: row.records ?? draft.done() })
  }

  /** Reads each zone once. One that can't be read doesn't block the others. */
  async function run(): Promise<void> {
    let failure: unknown
    for (const [name, state] of [...pending]) {
      state.changed = false
      try {
        const row = await read(name)
        if (closed) return
        pending.delete(name)
        onRead(name, row)
        if (state.changed) onChanged(name)
      } catch (error) {
        failure = error
      }
      if (closed) return
    }
    if (failure !== undefined) throw failure
  }

  function start(): void {
    if (closed || running || timer || pending.size === 0) return
    running = run()
      .catch((err) => {
        log.warn({ err }, 'a large zone could not be read; what is known of it stays in use')
        timer = setTimeout(() => {
          timer = undefined
          start()
        }, retryMs)
      })
      .finally(() => {
        running = null
        if (pending.size === 0) onIdle()
        else start()
      })
  }

  return {
    add(name, again) {
      const known = pending.get(name)
      if (known) known.changed = true
      else if (again) return false
      else pending.set(name, { changed: false })
      start()
      return true
    },
    get size() {
      return pending.size
    },
    async settled() {
      while (running && !timer) await running
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await running
    },
  }
}
