// One immutable zone, built for lookups: every name with its RRsets, empty non-terminals and delegations.

import { typeNumbers } from '../../dns/packet/numbers.ts'
import { wireName } from '../../dns/packet/wire-names.ts'
import type { RecordType } from '../../dns/record-types.ts'
import { isRecordType, numberOf } from '../../dns/type-names.ts'
import { challengeType } from '../../services/dns/served-zones.ts'
import { generatedNames as namesOfEdge } from '../../services/dns/zones.ts'
import { type Rdata, rdataOf, soaRdata } from './rdata.ts'

const generatedNames: ReadonlySet<string> = new Set(namesOfEdge)

export type Rrset = { readonly type: number; readonly ttl: number; readonly rdatas: readonly Rdata[] }

/** An RRset that is encoded at its first use: most sets are never requested. */
class StoredSet implements Rrset {
  readonly type: number
  ttl: number
  readonly #typeName: string
  readonly #values: string[]
  #rdatas: Rdata[] | null = null

  constructor(typeName: Exclude<RecordType, 'ALIAS'>, ttl: number, value: string) {
    this.type = numberOf(typeName)
    this.ttl = ttl
    this.#typeName = typeName
    this.#values = [value]
  }

  add(ttl: number, value: string): void {
    this.#values.push(value)
    // Records of one name and type have one TTL (RFC 2181, section 5.2): the lowest, so that no change is late.
    if (ttl < this.ttl) this.ttl = ttl
  }

  get rdatas(): readonly Rdata[] {
    this.#rdatas ??= this.#values.flatMap((value) => rdataOf(this.#typeName, value) ?? [])
    return this.#rdatas
  }
}

export type ZoneNode = {
  sets: Rrset[]
  /** Answered with the addresses of another name. */
  alias: { target: string; ttl: number } | null
  /** The zone ends here: NS records of another zone, below the apex. */
  cut: boolean
}

export type Zone = {
  /** Names are in the form of wireName. */
  origin: string
  /** The account; empty for the platform itself. */
  owner: string
  serial: number
  nodes: ReadonlyMap<string, ZoneNode>
  soa: Rrset
  /** The SOA of negative answers: its TTL is how long they may be cached (RFC 2308). */
  negative: Rrset
  hasCuts: boolean
}

export type ZoneRecord = { name: string; type: string; value: string; ttl: number }

/** What the platform adds to every zone. */
export type ZoneConstants = {
  /** The NS records at the apex. */
  nameservers: readonly string[]
  /** The account; default: the platform itself. */
  owner?: string
  soa(zone: string): {
    mname: string
    rname: string
    refresh: number
    retry: number
    expire: number
    minimum: number
    ttl: number
  }
  /** Addresses of the edge for names that have none of their own; gets the records of these names. */
  generated(records: readonly ZoneRecord[]): readonly ZoneRecord[]
}

function addRecord(node: ZoneNode, type: Exclude<RecordType, 'ALIAS'>, ttl: number, value: string): void {
  const set = setOf(node, numberOf(type))
  if (set instanceof StoredSet) set.add(ttl, value)
  else node.sets.push(new StoredSet(type, ttl, value))
}

export function setOf(node: ZoneNode, type: number): Rrset | null {
  for (const set of node.sets) if (set.type === type) return set
  return null
}

/**
 * Adds the TXT record of an ACME challenge to a built zone without changing its other answers. Parent names that now
 * exist would no longer match a wildcard, so they get the wildcard's records, and a copy of the wildcard below them.
 */
function addChallenge(zone: Zone, nodeAt: (key: string) => ZoneNode, { name, ttl, value }: ZoneRecord): void {
  const key = wireName(name).slice(0, -1) + zone.origin
  const created: string[] = []
  let parent = key.slice(1 + key.charCodeAt(0))
  for (; !zone.nodes.has(parent); parent = parent.slice(1 + parent.charCodeAt(0))) created.push(parent)
  const wildcard = zone.nodes.get(`\x01*${parent}`)
  const node = nodeAt(key)
  if (wildcard && !wildcard.cut) {
    for (const one of created.flatMap((name) => [name, `\x01*${name}`])) {
      Object.assign(nodeAt(one), { sets: wildcard.sets, alias: wildcard.alias })
    }
  }
  // Either would lead the authority away from this record; they are restored when the challenge is over.
  node.sets = node.sets.filter(({ type }) => type !== typeNumbers.CNAME && type !== typeNumbers.NS)
  node.cut = false
  addRecord(node, 'TXT', ttl, value)
}

// Some milliseconds of the event loop.
const recordsInAStep = 500

/** Builds a zone in steps, so that questions are answered between them. */
export function* buildZoneInSteps(
  name: string,
  serial: number,
  records: Iterable<ZoneRecord>,
  constants: ZoneConstants,
): Generator<undefined, Zone> {
  const origin = wireName(name)
  const nodes = new Map<string, ZoneNode>()
  let hasCuts = false

  /** The node of a name; creates it and all nodes between it and the apex, which exist even if they are empty. */
  function nodeAt(key: string): ZoneNode {
    const known = nodes.get(key)
    if (known) return known
    const node: ZoneNode = { sets: [], alias: null, cut: false }
    nodes.set(key, node)
    if (key !== origin) nodeAt(key.slice(1 + key.charCodeAt(0)))
    return node
  }

  const apex = nodeAt(origin)
  const { ttl, minimum, ...soa } = constants.soa(name)
  const soaSet: Rrset = { type: typeNumbers.SOA, ttl, rdatas: [soaRdata({ ...soa, minimum, serial })] }
  apex.sets.push(soaSet)
  for (const host of constants.nameservers) addRecord(apex, 'NS', ttl, host)

  const challenges: ZoneRecord[] = []
  function add(record: ZoneRecord): void {
    if (record.type === challengeType) challenges.push(record)
    if (!isRecordType(record.type)) return
    const relative = record.name === '@' ? '' : wireName(record.name).slice(0, -1)
    const node = nodeAt(relative + origin)
    if (record.type === 'ALIAS') {
      node.alias = { target: wireName(record.value), ttl: record.ttl }
      return
    }
    addRecord(node, record.type, record.ttl, record.value)
    if (record.type === 'NS' && node !== apex) {
      node.cut = true
      hasCuts = true
    }
  }

  // What the platform adds depends on the records of two names alone.
  const pointed: ZoneRecord[] = []
  let added = 0
  for (const record of records) {
    add(record)
    if (generatedNames.has(record.name)) pointed.push(record)
    if (++added % recordsInAStep === 0) yield
  }
  for (const record of constants.generated(pointed)) add(record)
  const negative = { ...soaSet, ttl: Math.min(ttl, minimum) }
  const zone: Zone = { origin, owner: constants.owner ?? '', serial, nodes, soa: soaSet, negative, hasCuts }
  for (const challenge of challenges) addChallenge(zone, nodeAt, challenge)
  return zone
}

export function buildZone(name: string, serial: number, records: Iterable<ZoneRecord>, constants: ZoneConstants): Zone {
  const steps = buildZoneInSteps(name, serial, records, constants)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
