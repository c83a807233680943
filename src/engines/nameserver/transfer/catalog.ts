// The catalog zone (RFC 9432): one record per zone, from which secondaries learn which zones to transfer.
import { createHash } from 'node:crypto'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { OwnedSet } from '../zones/lookup.ts'
import { type Rdata, soaRdata, textRdata } from '../zones/rdata.ts'
import type { Rrset } from '../zones/zone.ts'
import type { ZoneSource } from '../zones/zone-table.ts'
import { type Difference, knownStep, type Step } from './journal.ts'

/** `invalid` is never delegated, so nobody can own this name; only secondaries see the zone. */
export const catalogName = 'catalog.berth.invalid'

export type Catalog = {
  readonly origin: string
  readonly serial: number
  soa(): Rrset
  /** All records of the current version except the SOA, even if they are read later. */
  records(): Iterable<OwnedSet>
  /** Call when this zone may have been added, removed or replaced by another one of the same name. */
  touch(origin: string): void
  close(): void
}

const typePtr = 12
const ttl = 0
const timers = { refresh: 600, retry: 60, expire: 604_800, minimum: 0 }
// The serial is the time, so that it grows across restarts without being stored. In bursts it may be ahead of the clock by
// this much. A new process starts with that lead, so it is never behind the serials of the previous process.
const leadSeconds = 10
const coalesceMs = 20
const waitMs = 100

const origin = wireName(catalogName)
const none = Buffer.alloc(0)
const rdataOfName = (name: string): Rdata => ({ head: none, names: [name], tail: none })
const fixed: OwnedSet[] = [
  { owner: origin, set: { type: typeNumbers.NS, ttl, rdatas: [rdataOfName(wireName('invalid'))] } },
  {
    owner: wireName(`version.${catalogName}`),
    set: { type: typeNumbers.TXT, ttl, rdatas: [textRdata([Buffer.from('2')])] },
  },
]

function soaOf(serial: number): Rrset {
  return {
    type: typeNumbers.SOA,
    ttl,
    rdatas: [soaRdata({ mname: 'invalid', rname: 'invalid', serial, ...timers })],
  }
}

/** Derived from the id: a recreated domain restarts its serials, and a new label makes secondaries drop the old zone. */
function labelOf({ id }: ZoneSource): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32)
}

function member(label: string, zone: string): OwnedSet {
  const owner = wireName(`${label}.zones.${catalogName}`)
  return { owner, set: { type: typePtr, ttl, rdatas: [rdataOfName(zone)] } }
}

function* membersOf(labels: readonly [zone: string, label: string][]): Generator<OwnedSet> {
  yield* fixed
  for (const [zone, label] of labels) yield member(label, zone)
}

export function createCatalog(
  served: ReadonlyMap<string, ZoneSource>,
  onVersion: (step: Step) => void,
  now: () => number,
): Catalog {
  const labels = new Map<string, string>()
  for (const [zone, source] of served) labels.set(zone, labelOf(source))
  const touched = new Set<string>()
  let serial = now() + leadSeconds
  let timer: NodeJS.Timeout | null = null

  function publish(): void {
    timer = null
    const next = Math.max(serial + 1, now())
    if (next > now() + leadSeconds) {
      schedule(waitMs)
      return
    }
    const difference: Difference = {
      from: serial,
      to: next,
      fromSoa: soaOf(serial),
      toSoa: soaOf(next),
      removed: [],
      added: [],
    }
    for (const zone of touched) {
      const source = served.get(zone)
      const [had, has] = [labels.get(zone), source && labelOf(source)]
      if (had === has) continue
      if (had !== undefined) difference.removed.push(member(had, zone))
      if (has !== undefined) {
        difference.added.push(member(has, zone))
        labels.set(zone, has)
      } else labels.delete(zone)
    }
    touched.clear()
    if (difference.removed.length + difference.added.length === 0) return
    serial = next
    onVersion(knownStep(difference))
  }

  function schedule(delayMs: number): void {
    timer ??= setTimeout(publish, delayMs)
  }

  return {
    origin,
    get serial() {
      return serial
    },
    soa: () => soaOf(serial),
    records: () => membersOf([...labels]),
    touch(zone) {
      touched.add(zone)
      schedule(coalesceMs)
    },
    close() {
      if (timer) clearTimeout(timer)
    },
  }
}
