// An immutable zone for lookups: every name with its RRsets, including empty non-terminals and delegations. Most zones are
// built as a whole; a large one has its records by name and builds its nodes on demand.

import { isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { RecordType } from '../../../dns/record-types.ts'
import { isRecordType, numberOf } from '../../../dns/type-names.ts'
import { aliasedType, challengeType, generatedNames as edgeNames } from '../../../services/dns/index.ts'
import { apexSets, markAlias, ownedApexTypes } from './apex.ts'
import { type Rdata, rdataOf, soaRdata } from './rdata.ts'
import { type FoundSignatures, openSignatures, type ZoneSigning } from './signing.ts'
import type { SortedTexts } from './sorted-texts.ts'
import { keyOf, type RecordsByName, recordsOf, type ZoneRecord } from './zone-records.ts'

const generatedNames: ReadonlySet<string> = new Set(edgeNames)

export type Rrset = { readonly type: number; readonly ttl: number; readonly rdatas: readonly Rdata[] }

/** An RRset that is encoded on first use, because most sets are never requested. */
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
    this.#rdatas ??= this.encode()
    return this.#rdatas
  }

  encode(): Rdata[] {
    return this.#values.flatMap((value) => rdataOf(this.#typeName, value) ?? [])
  }
}

/** Like `rdatas`, but without caching them, for signing, which reads all sets of a zone. */
export const rdatasOf = (set: Rrset) => (set instanceof StoredSet ? set.encode() : set.rdatas)

export type ZoneNode = {
  sets: Rrset[]
  /** Answered with the addresses of another name. If that is outside the zone, `addresses` are those known; null until then. */
  alias: { target: string; ttl: number; addresses: Map<number, Rrset> | null } | null
  /** The zone ends here: NS records of another zone, below the apex. */
  cut: boolean
}

/** Names are in the form of wireName. A name without records but with names below it has an empty node. */
export type ZoneNodes = Iterable<[string, ZoneNode]> & {
  get(name: string): ZoneNode | undefined
  has(name: string): boolean
  keys(): Iterable<string>
}

/** Everything that lookups and transfers see of a zone, however it is stored. */
export type Zone = {
  origin: string
  /** The account; empty for the platform itself. */
  owner: string
  serial: number
  nodes: ZoneNodes
  soa: Rrset
  /** The SOA of negative answers: its TTL is how long they may be cached (RFC 2308). */
  negative: Rrset
  hasCuts: boolean
  /** Null for a zone that isn't signed. */
  signed: SignedParts | null
}

/** What a signed zone has in addition to its records. */
export type SignedParts = {
  readonly signing: ZoneSigning
  readonly signatures: FoundSignatures
  /** The existing names in the order of their denial; null until it is needed. */
  chain: SortedTexts | null
  /** A cache of what was created for answers: signatures by set, and denials by entry. */
  readonly cache: { signatures: Map<string, readonly Rdata[]>; denials: Map<string, { owner: string; set: Rrset }> }
}

/** What the platform adds to every zone. */
export type ZoneConstants = {
  /** The NS records at the apex. */
  nameservers: readonly string[]
  /** The account; by default the platform itself. */
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
  /** By default, the zone isn't signed. */
  signing?: ZoneSigning | null
  /** The edge's addresses for names that have no addresses of their own. Receives the records of these names. */
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

/** The nodes of a zone that is being built. */
type NodeStore = ZoneNodes & {
  /** The mutable node of a name. Creates it if it is missing, with all nodes between it and the apex. */
  nodeAt(key: string): ZoneNode
}

const emptyNode = (): ZoneNode => ({ sets: [], alias: null, cut: false })

class BuiltNodes extends Map<string, ZoneNode> implements NodeStore {
  readonly #origin: string

  constructor(origin: string) {
    super()
    this.#origin = origin
  }

  nodeAt(key: string): ZoneNode {
    const known = this.get(key)
    if (known) return known
    const node = emptyNode()
    this.set(key, node)
    if (key !== this.#origin) this.nodeAt(key.slice(1 + key.charCodeAt(0)))
    return node
  }
}

/** Nodes of a large zone. Only long ones are cached: answers are cached anyway, and most names are never queried. */
class NodesByName implements NodeStore {
  readonly #records: RecordsByName
  readonly #marks: boolean
  /** Nodes that have more than their records. */
  readonly #own = new Map<string, ZoneNode>()

  constructor(records: RecordsByName, marks: boolean) {
    this.#records = records
    this.#marks = marks
  }

  get(key: string): ZoneNode | undefined {
    return this.#own.get(key) ?? this.#read(key, cachedNodeOf)
  }

  has(key: string): boolean {
    return this.#records.has(key) || this.#own.has(key)
  }

  *keys(): Generator<string> {
    yield* this.#records.keys()
    for (const key of this.#own.keys()) if (!this.#records.has(key)) yield key
  }

  *[Symbol.iterator](): Generator<[string, ZoneNode]> {
    for (const key of this.keys()) yield [key, this.get(key)!]
  }

  nodeAt(key: string): ZoneNode {
    const known = this.#own.get(key)
    if (known) return known
    const stored = this.#read(key, nodeOf)
    const node = stored ?? emptyNode()
    this.#own.set(key, node)
    if (!stored) this.nodeAt(key.slice(1 + key.charCodeAt(0)))
    return node
  }

  #read(key: string, build: typeof nodeOf): ZoneNode | undefined {
    const lines = this.#records.linesAt(key)
    if (lines === undefined) return this.#records.has(key) ? emptyNode() : undefined
    const node = build(lines, key === this.#records.origin)
    if (this.#marks) markAlias(node)
    return node
  }
}

function nodeOf(lines: string, isApex: boolean): ZoneNode {
  const node = emptyNode()
  for (const record of recordsOf(lines)) addTo(node, record, isApex)
  return node
}

// Reading a name of 60 KiB takes some ten milliseconds, and its answers are too long for the cache.
const longCharacters = 2_000
/** Keyed by their lines, which versions of a zone share. */
const longNodes = new LRUCache<string, ZoneNode>({ maxSize: 10_000_000, sizeCalculation: (_, lines) => lines.length })

/** A read-only node, which shares its sets with other callers. */
function cachedNodeOf(lines: string, isApex: boolean): ZoneNode {
  if (lines.length < longCharacters || isApex) return nodeOf(lines, isApex)
  const known = longNodes.get(lines)
  const node = known ?? nodeOf(lines, isApex)
  if (!known) longNodes.set(lines, node)
  return { ...node, sets: [...node.sets] }
}

function addTo(node: ZoneNode, record: ZoneRecord, isApex: boolean): void {
  const { type, ttl, value } = record
  if (type === aliasedType) addAddress(node, record)
  if (!isRecordType(type)) return
  if (type === 'ALIAS') {
    node.alias = { target: wireName(value), ttl, addresses: null }
    return
  }
  addRecord(node, type, ttl, value)
  if (type === 'NS' && !isApex) node.cut = true
}

const marksAliases = ({ signing }: ZoneConstants) => signing?.denial === 'nsec3'

/**
 * Adds the TXT record of an ACME challenge to a built zone without changing its other answers. Ancestors that exist because
 * of it would no longer match a wildcard, so they get the wildcard's records, and a copy of the wildcard below them.
 */
function addChallenge(nodes: NodeStore, origin: string, { name, ttl, value }: ZoneRecord): void {
  const key = keyOf(name, origin)
  const created: string[] = []
  let parent = key.slice(1 + key.charCodeAt(0))
  for (; !nodes.has(parent); parent = parent.slice(1 + parent.charCodeAt(0))) created.push(parent)
  const wildcard = nodes.get(`\x01*${parent}`)
  const node = nodes.nodeAt(key)
  if (wildcard && !wildcard.cut) {
    for (const one of created.flatMap((name) => [name, `\x01*${name}`])) {
      Object.assign(nodes.nodeAt(one), { sets: wildcard.sets, alias: wildcard.alias })
    }
  }
  // Either would move the authority away from this record. They are back when the challenge is over.
  node.sets = node.sets.filter(({ type }) => type !== typeNumbers.CNAME && type !== typeNumbers.NS)
  node.cut = false
  addRecord(node, 'TXT', ttl, value)
}

/** Adds an address of an ALIAS that leads out of the zone. Its lines follow that of the ALIAS. */
function addAddress(node: ZoneNode, { ttl, value }: ZoneRecord): void {
  if (!node.alias) return
  node.alias.addresses ??= new Map()
  if (value === '-') return
  const type = isIPv6(value) ? ('AAAA' as const) : ('A' as const)
  const set = node.alias.addresses.get(typeNumbers[type])
  if (set instanceof StoredSet) set.add(ttl, value)
  else node.alias.addresses.set(typeNumbers[type], new StoredSet(type, ttl, value))
}

type Built = {
  nodes: NodeStore
  hasCuts: boolean
  /** Records of the names that the platform adds addresses to. */
  generatedFor: readonly ZoneRecord[]
  challenges: Iterable<ZoneRecord>
}

/** Adds what the platform adds to every zone. */
function complete(name: string, serial: number, built: Built, constants: ZoneConstants): Zone {
  const { nodes, hasCuts, generatedFor, challenges } = built
  const origin = wireName(name)
  const apex = nodes.nodeAt(origin)
  const { ttl, minimum, ...soa } = constants.soa(name)
  const soaSet: Rrset = { type: typeNumbers.SOA, ttl, rdatas: [soaRdata({ ...soa, minimum, serial })] }
  apex.sets.unshift(soaSet)
  for (const host of constants.nameservers) addRecord(apex, 'NS', ttl, host)
  for (const record of constants.generated(generatedFor)) addTo(nodes.nodeAt(keyOf(record.name, origin)), record, true)
  const { owner = '', signing } = constants
  if (signing) {
    apex.sets = apex.sets.filter(({ type }) => !ownedApexTypes.has(type))
    apex.sets.push(...apexSets(origin, signing, ttl))
  }
  for (const challenge of challenges) addChallenge(nodes, origin, challenge)
  const negative = { ...soaSet, ttl: Math.min(ttl, minimum) }
  const signed = signing ? signedParts(signing) : null
  return { origin, owner, serial, nodes, soa: soaSet, negative, hasCuts, signed }
}

/** The signing state of a zone, with an empty cache. */
export function signedParts(signing: ZoneSigning): SignedParts {
  const cache = { signatures: new Map(), denials: new Map() }
  return { signing, signatures: openSignatures(signing.signatures), chain: signing.chain, cache }
}

export function buildZone(name: string, serial: number, records: Iterable<ZoneRecord>, constants: ZoneConstants): Zone {
  const origin = wireName(name)
  const nodes = new BuiltNodes(origin)
  const generatedFor: ZoneRecord[] = []
  const challenges: ZoneRecord[] = []
  let hasCuts = false
  for (const record of records) {
    if (record.type === challengeType) {
      challenges.push(record)
      continue
    }
    const key = keyOf(record.name, origin)
    const node = nodes.nodeAt(key)
    addTo(node, record, key === origin)
    hasCuts ||= node.cut
    if (generatedNames.has(record.name)) generatedFor.push(record)
  }
  if (marksAliases(constants)) for (const node of nodes.values()) markAlias(node)
  return complete(name, serial, { nodes, hasCuts, generatedFor, challenges }, constants)
}

/** A zone whose nodes are built on demand, so that opening it takes the same time whatever its size. */
export function openZone(name: string, serial: number, records: RecordsByName, constants: ZoneConstants): Zone {
  const nodes = new NodesByName(records, marksAliases(constants))
  const generatedFor = edgeNames.flatMap((one) => [...recordsOf(records.linesAt(keyOf(one, records.origin)) ?? '')])
  const { hasCuts } = records
  return complete(name, serial, { nodes, hasCuts, generatedFor, challenges: recordsOf(records.extras) }, constants)
}
