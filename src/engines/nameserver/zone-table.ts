// All zones by name in a compact form; finds the zone that answers a question.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { typeNumbers } from '../../dns/packet/numbers.ts'
import { textName, wireName } from '../../dns/packet/wire-names.ts'
import { platformIds, type ServedZoneRow, type ServedZoneState } from '../../services/dns/served-zones.ts'
import type { Tally } from '../../services/traffic/tallies.ts'
import { createZoneTallies } from './traffic.ts'
import { buildZone, buildZoneInSteps, type Zone, type ZoneConstants, type ZoneRecord } from './zone.ts'

/** A zone as it was read: its records are one string, a tenth of the size of the built zone. */
export type ZoneSource = {
  readonly name: string
  readonly origin: string
  readonly id: string
  readonly accountId: string
  readonly verified: boolean
  /** It is answered REFUSED, together with all names that are in it, and no other zone answers for them. */
  readonly refused: boolean
  readonly serial: number
  /** Those of the claim; without any, the zone has those of the platform's own zones. */
  readonly nameservers?: readonly string[]
  readonly records: string
  /** False as soon as the zone was replaced or removed. */
  live: boolean
  /** What it is counted by; null until it is asked for the first time. */
  tally: Tally | null
}

// A few thousand zones of usual size; frequent questions are answered from the answer cache.
const highestBuiltRecords = 50_000
// Some thousand records: a larger zone is built in steps, while its questions wait.
const builtAtOnceCharacters = 50_000

function recordOf(line: string): ZoneRecord {
  const type = line.indexOf(' ')
  const ttl = line.indexOf(' ', type + 1)
  const name = line.indexOf(' ', ttl + 1)
  return {
    type: line.slice(0, type),
    ttl: Number(line.slice(type + 1, ttl)),
    name: line.slice(ttl + 1, name),
    value: line.slice(name + 1),
  }
}

export function* recordsOf({ records }: ZoneSource): Generator<ZoneRecord> {
  for (let at = 0; at < records.length; ) {
    const found = records.indexOf('\n', at)
    const end = found < 0 ? records.length : found
    yield recordOf(records.slice(at, end))
    at = end + 1
  }
}

export class ZoneTable {
  readonly #sources = new Map<string, ZoneSource>()
  /** How many zones are below a name: shows whether adding or removing a zone affects others. */
  readonly #below = new Map<string, number>()
  readonly #built: LRUCache<ZoneSource, Zone>
  readonly #preparing = new Map<ZoneSource, Promise<Zone>>()
  #turn: Promise<unknown> = Promise.resolve()
  readonly #constants: ZoneConstants
  /** By pair of nameservers: there are few pairs and many zones. */
  readonly #constantsOfPairs = new Map<string, ZoneConstants>()
  readonly #onMoved: () => void
  /** What was asked of the zones. */
  readonly tallies = createZoneTallies()

  /** `onMoved` is called when a name may have moved from one zone to another. */
  constructor(constants: ZoneConstants, onMoved: () => void) {
    this.#constants = constants
    this.#onMoved = onMoved
    this.#built = new LRUCache({
      maxSize: highestBuiltRecords,
      // Capped, because an entry larger than the cache would not be kept: one huge zone may evict all others.
      sizeCalculation: (zone) => Math.min(highestBuiltRecords, zone.nodes.size + 10),
    })
  }

  get size(): number {
    return this.#sources.size
  }

  /** The zone of exactly this name, served or not. */
  get(name: string): ZoneSource | undefined {
    return this.#sources.get(wireName(name))
  }

  /** What a zone is counted by, also after it has changed; those of the platform count for nobody. */
  tallyOf(source: ZoneSource): Tally {
    const { nobody } = this.tallies
    source.tally ??= source.id.startsWith(platformIds) ? nobody : this.tallies.create(source.id, '')
    return source.tally
  }

  /** Every zone that is served. */
  *served(): Generator<ZoneSource> {
    for (const source of this.#sources.values()) {
      if (!source.refused && this.#find(source.origin) === source) yield source
    }
  }

  /** The zone if it is built or small enough to be built at once; otherwise null, and `prepare` builds it. */
  ready(source: ZoneSource): Zone | null {
    if (this.#fits(source)) return this.zoneOf(source)
    return this.#built.get(source) ?? null
  }

  #fits({ records }: ZoneSource): boolean {
    return records.length <= builtAtOnceCharacters
  }

  /** Builds a large zone beside everything else; one at a time, so that many of them take no more of the event loop. */
  prepare(source: ZoneSource): Promise<Zone> {
    const known = this.#preparing.get(source)
    if (known) return known
    const build = async () => {
      const steps = buildZoneInSteps(source.name, source.serial, recordsOf(source), this.#constantsOf(source))
      for (;;) {
        const { done, value } = steps.next()
        if (done) return value
        await nextTurn()
      }
    }
    const made = this.#turn.then(async () => {
      const zone = this.#built.get(source) ?? (await build())
      if (source.live) this.#built.set(source, zone)
      return zone
    })
    this.#preparing.set(source, made)
    this.#turn = made.then(
      () => void this.#preparing.delete(source),
      () => void this.#preparing.delete(source),
    )
    return made
  }

  zoneOf(source: ZoneSource): Zone {
    let zone = this.#built.get(source)
    if (!zone) {
      zone = buildZone(source.name, source.serial, recordsOf(source), this.#constantsOf(source))
      if (source.live) this.#built.set(source, zone)
    }
    return zone
  }

  #constantsOf({ accountId: owner, nameservers = [] }: ZoneSource): ZoneConstants {
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
    return parent && this.#delegates(parent, name) ? parent : source
  }

  #delegates(parent: ZoneSource, name: string): boolean {
    const zone = this.ready(parent)
    if (zone) return zone.nodes.get(name)?.cut ?? false
    const relative = ` ${textName(name.slice(0, name.length - parent.origin.length))} `
    for (let at = parent.records.indexOf(relative); at >= 0; at = parent.records.indexOf(relative, at + 1)) {
      const line = parent.records.lastIndexOf('\n', at) + 1
      if (parent.records.startsWith('NS ', line) && parent.records.indexOf(' ', line + 3) === at) return true
    }
    return false
  }

  /**
   * The closest zone, unless it is unverified and below a name that another account has verified: otherwise anyone
   * could take over a subdomain by attaching it.
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

  /** Everything in the table, as rows of the database. */
  *rows(): Generator<ServedZoneRow> {
    for (const { name, id, accountId, verified, refused, serial, nameservers, records } of this.#sources.values()) {
      yield { name, id, accountId, verified, refused, serial, nameservers, records }
    }
  }

  /** Applies the rows read for these names; names without a row are removed. Returns the names that changed. */
  apply(asked: Iterable<string>, rows: readonly ServedZoneRow[]): string[] {
    const changed: string[] = []
    const left = new Set(asked)
    for (const row of rows) {
      left.delete(row.name)
      if (this.isCurrent(row)) continue
      this.#put(row)
      changed.push(row.name)
    }
    for (const name of left) if (this.#remove(wireName(name))) changed.push(name)
    return changed
  }

  #put(row: ServedZoneRow): void {
    const { name, id, accountId, verified, refused, serial, records } = row
    // The list that all zones of the pair share, so that each has but a reference.
    const nameservers =
      row.nameservers && this.#constantsOf({ ...row, origin: '', live: false, tally: null }).nameservers
    const origin = wireName(name)
    const before = this.#sources.get(origin)
    const tally = before?.id === id ? before.tally : null
    const state = { id, accountId, verified, refused, serial, nameservers, records, live: true, tally }
    const source = { name, origin, ...state }
    // A large zone that is asked for will be asked again.
    if (before && this.#built.has(before) && !this.#fits(source)) void this.prepare(source).catch(() => {})
    if (before) this.#retire(before)
    this.#sources.set(origin, source)
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
