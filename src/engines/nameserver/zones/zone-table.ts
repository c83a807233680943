// All zones by name in a compact form; finds the zone that answers a question.
import { LRUCache } from 'lru-cache'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Tally } from '../../../platform/observe/tallies.ts'
import {
  platformIds,
  type ServedZoneChange,
  type ServedZoneRow,
  type ServedZoneState,
} from '../../../services/dns/index.ts'
import { type Announced, announceChange, announceZone } from './announce.ts'
import { NameFilter } from './name-filter.ts'
import { joinedSigning, type SavedRow, signedRows } from './saved-rows.ts'
import type { ZoneSigning } from './signing.ts'
import { createZoneTallies } from './traffic.ts'
import { buildZone, openZone, type Zone, type ZoneConstants } from './zone.ts'
import { emptyRecords, RecordsByName, recordsOf, type ZoneRecords } from './zone-records.ts'

/** A zone as it was read. */
export type ZoneSource = {
  readonly name: string
  readonly origin: string
  readonly id: string
  readonly accountId: string
  readonly verified: boolean
  /** Answered with REFUSED, including all names in it; no other zone answers for them. */
  readonly refused: boolean
  readonly serial: number
  /** Those of the domain; without any, the zone has the nameservers of the platform's own zones. */
  readonly nameservers?: readonly string[]
  readonly records: ZoneRecords
  /** Null for a zone that isn't signed. */
  readonly signing: ZoneSigning | null
  /** False as soon as the zone was replaced or removed. */
  live: boolean
  /** Its query counts; null until the first query. */
  tally: Tally | null
  /** Whether the filter has all its names; versions of a large zone share it. */
  readonly announced: Announced
}

/** A row of the database. A large zone may have its records by name already. */
export type ZoneRow = Omit<ServedZoneRow, 'records' | 'signing'> & {
  records: ZoneRecords
  signing?: ZoneSigning | null
  /** The built zone, if it was needed before. */
  zone?: Zone
}

/** A large zone with its changes, and without its signatures. */
export type ChangedRow = Omit<ServedZoneChange, 'records'> & { records: RecordsByName; before: ZoneSource }

// A few thousand zones of usual size; frequent questions are answered from the answer cache.
const maxBuiltCharacters = 2_000_000
// About a thousand records: a larger zone isn't built as a whole. For a signed zone, which takes longer because every set
// is processed, the limit is a hundred. The changes of both are recorded (`note_zone_change`).
const builtCharacters = 50_000
const signedCharacters = 4_096

/** Stores the records by name if there are many. */
export function recordsFrom(origin: string, text: string, isSigned = false): ZoneRecords {
  if (text.length <= (isSigned ? signedCharacters : builtCharacters)) return text
  const draft = emptyRecords(origin).edit()
  draft.add(text)
  return draft.done()
}

/** Joins the rows of `ZoneTable.rows` into one per zone. */
export function* joinedRows(rows: readonly SavedRow[]): Generator<ZoneRow & { records: string }> {
  for (let first = 0, end = 1; first < rows.length; first = end++) {
    while (rows[end]?.id === rows[first]!.id) end++
    const parts = rows.slice(first, end)
    const { signing, ...row } = rows[first]!
    const texts = parts.map(({ records }) => records)
    const records = texts.filter((text) => text !== '').join('\n')
    yield { ...row, records, signing: signing ? joinedSigning(signing, parts) : null }
  }
}

export class ZoneTable {
  readonly #sources = new Map<string, ZoneSource>()
  /** How many zones are below a name, to know whether adding or removing a zone affects others. */
  readonly #below = new Map<string, number>()
  readonly #built: LRUCache<ZoneSource, Zone>
  readonly #constants: ZoneConstants
  /** By pair of nameservers, because there are few pairs and many zones. */
  readonly #constantsOfPairs = new Map<string, ZoneConstants>()
  readonly #onMoved: () => void
  /** Query counts of the zones. */
  readonly tallies = createZoneTallies()
  /** Contains the names of all zones, and the names in zones that were announced. */
  readonly filter: NameFilter

  /** `onMoved` is called when a name may have moved from one zone to another. */
  constructor(constants: ZoneConstants, onMoved: () => void, filter = new NameFilter()) {
    this.#constants = constants
    this.#onMoved = onMoved
    this.filter = filter
    this.#built = new LRUCache({
      maxSize: maxBuiltCharacters,
      // A large zone only takes what is added to it.
      sizeCalculation: (_, { records }) => 400 + (typeof records === 'string' ? records.length : 0),
    })
  }

  get size(): number {
    return this.#sources.size
  }

  /** The zone with exactly this name, served or not. */
  get(name: string): ZoneSource | undefined {
    return this.#sources.get(wireName(name))
  }

  /** The query counts of a zone, which survive its changes. The platform's zones aren't counted. */
  tallyOf(source: ZoneSource): Tally {
    const { nobody } = this.tallies
    source.tally ??= source.id.startsWith(platformIds) ? nobody : this.tallies.create(source.id, '')
    return source.tally
  }

  /** All zones that are served. */
  *served(): Generator<ZoneSource> {
    for (const source of this.#sources.values()) {
      if (!source.refused && this.#find(source.origin) === source) yield source
    }
  }

  /** Never takes longer than building a zone of `builtCharacters`. */
  zoneOf(source: ZoneSource): Zone {
    let zone = this.#built.get(source)
    if (!zone) {
      zone = this.draft(source)
      if (source.live) this.#built.set(source, zone)
    }
    return zone
  }

  /** Creates a zone from its row, whether it is in the table or not. */
  draft(row: Pick<ZoneSource, 'name' | 'serial' | 'accountId' | 'nameservers' | 'records' | 'signing'>): Zone {
    const { name, serial, records, signing } = row
    const constants = { ...this.#constantsOf(row), signing }
    return typeof records === 'string'
      ? buildZone(name, serial, recordsOf(records), constants)
      : openZone(name, serial, records, constants)
  }

  /** Whether the filter has every name of the zone, so that other threads can deny names; if not, adds them. */
  announce(source: ZoneSource): boolean {
    const { filter } = this
    if (filter.isFull) {
      filter.renew(() => {
        for (const origin of this.#sources.keys()) filter.add(origin)
        this.#onMoved()
      })
    }
    return announceZone(filter, source.announced, source.records, () => this.zoneOf(source).nodes.keys())
  }

  #constantsOf({ accountId: owner, nameservers = [] }: Pick<ZoneSource, 'accountId' | 'nameservers'>): ZoneConstants {
    const [mname] = nameservers
    if (mname === undefined) return { ...this.#constants, owner }
    const { soa } = this.#constants
    const pair = nameservers.join(' ')
    const constants = this.#constantsOfPairs.get(pair) ?? {
      ...this.#constants,
      nameservers,
      soa: (zone: string) => ({ ...soa(zone), mname }),
    }
    this.#constantsOfPairs.set(pair, constants)
    return { ...constants, owner }
  }

  /** The zone that answers for a name. */
  find(name: string, type: number): ZoneSource | null {
    const source = this.#findOfType(name, type)
    return source?.refused ? null : source
  }

  #findOfType(name: string, type: number): ZoneSource | null {
    const source = this.#find(name)
    if (!source || type !== typeNumbers.DS || source.origin !== name) return source
    // DS is answered by the parent zone, if that is ours and delegates the name.
    const parent = this.#find(name.slice(1 + name.charCodeAt(0)))
    return parent && this.zoneOf(parent).nodes.get(name)?.cut ? parent : source
  }

  /**
   * The closest zone, unless it is unverified and below a name that another account has verified: otherwise anyone could
   * take over a subdomain by attaching it.
   */
  #find(name: string): ZoneSource | null {
    let found: ZoneSource | null = null
    for (let at = 0; at < name.length - 1; at += 1 + name.charCodeAt(at)) {
      const source = this.#sources.get(at === 0 ? name : name.slice(at))
      if (!source) continue
      if (!source.verified) found ??= source
      else return found === null || found.accountId !== source.accountId ? source : found
    }
    return found
  }

  isCurrent(state: ServedZoneState): boolean {
    const source = this.#sources.get(wireName(state.name))
    if (source?.id !== state.id || source.serial !== state.serial) return false
    return source.verified === state.verified && source.refused === state.refused
  }

  names(): string[] {
    return Array.from(this.#sources.values(), (source) => source.name)
  }

  /** Everything in the table as rows of the database; a large zone as several consecutive rows. */
  *rows(): Generator<SavedRow> {
    for (const source of this.#sources.values()) {
      const { name, id, accountId, verified, refused, serial, nameservers, records, signing } = source
      const state = { name, id, accountId, verified, refused, serial, nameservers }
      const texts = typeof records === 'string' ? [records] : records.texts()
      if (!signing) for (const text of texts) yield { ...state, records: text }
      else yield* signedRows(state, texts, signing)
    }
  }

  /** Applies the rows read for these names; names without a row are removed. Returns the names that changed. */
  apply(names: Iterable<string>, rows: Iterable<ZoneRow>): string[] {
    const changed: string[] = []
    const left = new Set(names)
    for (const row of rows) {
      left.delete(row.name)
      if (this.isCurrent(row)) continue
      this.#put(row, { era: 0, inProgress: false })
      changed.push(row.name)
    }
    for (const name of left) if (this.#remove(wireName(name))) changed.push(name)
    return changed
  }

  /** Applies changes to the records of large zones, unless the zones were replaced in the meantime. */
  changed(rows: Iterable<ServedZoneChange>): ChangedRow[] {
    const changed: ChangedRow[] = []
    for (const { names, records: text, ...row } of rows) {
      const before = this.get(row.name)
      if (!(before?.records instanceof RecordsByName) || before.id !== row.id || this.isCurrent(row)) continue
      changed.push({ ...row, names, before, records: before.records.change(names, text) })
    }
    return changed
  }

  /** Puts changed large zones into the table. */
  change(rows: Iterable<ZoneRow & Pick<ChangedRow, 'names' | 'before' | 'records'>>): string[] {
    const applied: string[] = []
    for (const { names, before, ...row } of rows) {
      // Before the zone contains the names, so that no existing name is denied.
      announceChange(this.filter, names, row.records)
      this.#put(row, before.announced)
      applied.push(row.name)
    }
    return applied
  }

  #put(row: ZoneRow, announced: Announced): void {
    const { name, id, accountId, verified, refused, serial, signing = null } = row
    // The list that all zones with this pair share, so that each only has a reference.
    const nameservers = row.nameservers && this.#constantsOf(row).nameservers
    const origin = wireName(name)
    const records = typeof row.records === 'string' ? recordsFrom(origin, row.records, signing !== null) : row.records
    const before = this.#sources.get(origin)
    const tally = before?.id === id ? before.tally : null
    const state = { id, accountId, verified, refused, serial, nameservers, records, signing, tally, announced }
    this.filter.add(origin)
    if (before) this.#retire(before)
    const source = { name, origin, ...state, live: true }
    this.#sources.set(origin, source)
    if (row.zone && records === row.records) this.#built.set(source, row.zone)
    if (before?.verified === verified && before.accountId === accountId) return
    if (!before) this.#countAbove(origin, 1)
    if (this.#hasRelatives(origin)) this.#onMoved()
  }

  #remove(origin: string): boolean {
    const before = this.#sources.get(origin)
    if (!before) return false
    this.#sources.delete(origin)
    this.#retire(before)
    this.#countAbove(origin, -1)
    if (this.#hasRelatives(origin)) this.#onMoved()
    return true
  }

  #retire(source: ZoneSource): void {
    source.live = false
    this.#built.delete(source)
  }

  *#above(origin: string): Generator<string> {
    for (let at = 1 + origin.charCodeAt(0); at < origin.length - 1; at += 1 + origin.charCodeAt(at)) {
      yield origin.slice(at)
    }
  }

  #countAbove(origin: string, change: 1 | -1): void {
    for (const name of this.#above(origin)) {
      const count = (this.#below.get(name) ?? 0) + change
      if (count === 0) this.#below.delete(name)
      else this.#below.set(name, count)
    }
  }

  #hasRelatives(origin: string): boolean {
    return this.#below.has(origin) || [...this.#above(origin)].some((name) => this.#sources.has(name))
  }
}
