// The single records of a zone for transfers, and the difference between two versions of a zone.

import { nameWithinZone } from '../../../dns/names.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { challengeType } from '../../../services/dns/index.ts'
import { chainOf, type SignedZone } from '../dnssec/chain.ts'
import { scopeBetween } from '../dnssec/change-scope.ts'
import { isSigned, setsIn, signatureRdatas } from '../dnssec/sets.ts'
import { changedNames, insideAliases, linesNamed, linesTyped, nameOf } from '../zones/changed-lines.ts'
import { lookup, type OutsideAddresses, type OwnedSet } from '../zones/lookup.ts'
import type { ChangeScope } from '../zones/signing.ts'
import { type Rrset, setOf, type Zone, type ZoneNode } from '../zones/zone.ts'
import type { ZoneSource, ZoneTable } from '../zones/zone-table.ts'
import { type Difference, knownStep, type Step } from './journal.ts'

const addressTypes = [typeNumbers.A, typeNumbers.AAAA]
// In a large zone. Each costs some lookups.
const maxFollowed = 100

function* single(owner: string, set: Rrset): Generator<OwnedSet> {
  // A set of thousands of records wouldn't fit into a message; single records do.
  for (const rdata of set.rdatas) yield { owner, set: { type: set.type, ttl: set.ttl, rdatas: [rdata] } }
}

function* recordsAt(owner: string, { sets }: ZoneNode): Generator<OwnedSet> {
  for (const set of sets) if (set.type !== typeNumbers.SOA) yield* single(owner, set)
}

/** The records of a name except the SOA, with the addresses of an ALIAS. */
function* answeredAt(zone: Zone, owner: string, node: ZoneNode, outside: OutsideAddresses): Generator<OwnedSet> {
  yield* recordsAt(owner, node)
  if (node.alias === null) return
  for (const type of addressTypes) {
    if (setOf(node, type) === null) yield* flattened(zone, owner, type, outside) ?? []
  }
}

/** What the nameserver answers for an ALIAS; null while it is unknown. */
function flattened(zone: Zone, owner: string, type: number, outside: OutsideAddresses): OwnedSet[] | null {
  const found = lookup(zone, owner, type, outside)
  if (found.rcode !== 0) return null
  const own = found.answer.find((one) => one.owner === owner && one.set.type === type)
  return own ? [...single(owner, own.set)] : []
}

/** Signatures and denials of a signed zone, for some entries of its chain. */
function* signingRecords(zone: SignedZone, entries: Iterable<string>, outside: OutsideAddresses): Generator<OwnedSet> {
  for (const owned of setsIn(zone, entries, outside)) {
    if (isDenial(owned.set.type)) yield owned
    // Not cached: a whole zone would evict the signatures that answers need.
    const { owner, set } = owned
    yield* single(owner, { type: typeNumbers.RRSIG, ttl: set.ttl, rdatas: signatureRdatas(zone, owned) })
  }
}

const isDenial = (type: number) => type === typeNumbers.NSEC || type === typeNumbers.NSEC3

/**
 * All records except the SOA, created on demand. An ALIAS whose addresses aren't known yet is omitted; the next version
 * includes them.
 */
export function* zoneRecords(zone: Zone, outside: OutsideAddresses): Generator<OwnedSet> {
  for (const [owner, node] of zone.nodes) yield* answeredAt(zone, owner, node, outside)
  if (isSigned(zone)) yield* signingRecords(zone, chainOf(zone), outside)
}

/** Only the SOA, without building the whole zone. */
export function soaOf(table: ZoneTable, source: ZoneSource): Rrset {
  return table.zoneOf({ ...source, records: '', signing: null, live: false }).soa
}

const targetIn = (line: string) => line.slice(line.lastIndexOf(' ') + 1)

/** ALIAS lines that lead to other names of their zone. */
function insideAliasLines({ origin, records }: ZoneSource, outside: OutsideAddresses): string[] {
  const names = new Set(insideAliases(origin, records, outside))
  return [...linesTyped(records, 'ALIAS')].filter((line) => names.has(nameOf(line)))
}

/**
 * Adds the names that these lines lead through, and the names above them, which may be delegations. Returns false if one of
 * them has no records: then a wildcard may answer for it, depending on other names.
 */
function addFollowed({ name: zone, records }: ZoneSource, lines: readonly string[], names: Set<string>): boolean {
  for (const first of lines) {
    let line: string | undefined = first
    for (let step = 0; line !== undefined && step < maxFollowed; step++) {
      names.add(nameOf(line))
      const target = nameWithinZone(targetIn(line), zone)
      if (target === null) break
      for (let name = target; ; name = name.slice(name.indexOf('.') + 1)) {
        names.add(name)
        if (!name.includes('.')) break
      }
      const found = linesNamed(records, new Set([target]))
      if (found.length === 0 && target !== '@' && target !== 'www') return false
      line = found.find((one) => /^(ALIAS|CNAME) /.test(one))
    }
  }
  return true
}

type Part = { owners: Iterable<string>; entries: Iterable<string> }

/** All records except the SOA, or those of a part of the names and of the chain. */
function keyed(zone: Zone, outside: OutsideAddresses, part: Part | null): Map<string, OwnedSet> {
  const records: OwnedSet[] = []
  for (const owner of part?.owners ?? zone.nodes.keys()) {
    const node = zone.nodes.get(owner)
    if (!node) continue
    records.push(...answeredAt(zone, owner, node, outside))
  }
  if (isSigned(zone)) records.push(...signingRecords(zone, part?.entries ?? chainOf(zone), outside))
  return new Map(records.map((one) => [keyOf(one), one]))
}

function keyOf({ owner, set: { type, ttl, rdatas } }: OwnedSet): string {
  const { head, names, tail } = rdatas[0]!
  return `${type} ${ttl} ${owner}${head.toString('latin1')}${names.join('')}${tail.toString('latin1')}`
}

const without = (all: Map<string, OwnedSet>, others: Map<string, OwnedSet>) =>
  [...all].filter(([key]) => !others.has(key)).map(([, one]) => one)

/** Whether a challenge may have copied a wildcard, which isn't among the lines of the changed names. */
function copiesWildcards({ records }: ZoneSource): boolean {
  for (const line of linesTyped(records, challengeType)) if (nameOf(line).includes('.')) return true
  return false
}

/** Null if it is unknown. Only changed names are built, so a large zone takes little more than a small one. */
export function differenceOf(
  table: ZoneTable,
  before: ZoneSource,
  after: ZoneSource,
  outside: OutsideAddresses,
): Difference | null {
  const large = typeof after.records !== 'string'
  const signed = before.signing !== null || after.signing !== null
  if (signed && large) {
    const scope = after.signing?.scope
    if (!before.signing || scope?.from !== before.serial) return null
    return between(table.zoneOf(before), table.zoneOf(after), outside, scope)
  }
  // The records that the platform adds depend on the records of these two names.
  const names = changedNames(before.records, after.records)?.add('@').add('www')
  if (!names) return null
  const followed = [insideAliasLines(before, outside), insideAliasLines(after, outside)] as const
  const leadsInside = followed.some((lines) => lines.length > 0)
  if (leadsInside && large) {
    if (followed.some((lines) => lines.length > maxFollowed)) return null
    if (!addFollowed(before, followed[0], names) || !addFollowed(after, followed[1], names)) return null
  }
  const whole = signed || copiesWildcards(before) || copiesWildcards(after) || (leadsInside && !large)
  if (whole && large) return null
  const part = (source: ZoneSource) => {
    if (whole) return table.zoneOf(source)
    return table.zoneOf({ ...source, records: linesNamed(source.records, names).join('\n'), live: false })
  }
  const [from, to] = [part(before), part(after)]
  const scope =
    signed &&
    scopeBetween({ zone: from, records: before.records }, { zone: to, records: after.records }, [...names], outside)
  return between(from, to, outside, scope || null)
}

// Some fifty records: keeping two such versions costs less than computing the difference.
const lazyCharacters = 5_000
// How much memory one record of a difference takes.
const charactersOfARecord = 250

/** The size of a version that is kept; null if it is large, or depends on more than its text. */
function keptCharacters({ records, signing }: ZoneSource): number | null {
  if (typeof records !== 'string' || records.length > lazyCharacters) return null
  if (linesTyped(records, 'ALIAS').next().done !== true) return null
  return records.length + (typeof signing?.signatures === 'string' ? signing.signatures.length : 0)
}

/** The change from one version to the next; null if it is unknown. For a small zone, the difference is computed on demand. */
export function stepBetween(
  table: ZoneTable,
  before: ZoneSource,
  after: ZoneSource,
  outside: OutsideAddresses,
): Step | null {
  const [had, has] = [keptCharacters(before), keptCharacters(after)]
  if (had === null || has === null) {
    const difference = differenceOf(table, before, after, outside)
    return difference && knownStep(difference)
  }
  // Keeps both versions until the difference is computed, and then only the difference.
  let versions: [ZoneSource, ZoneSource] | null = [before, after]
  let known: Difference | null = null
  return {
    from: before.serial,
    to: after.serial,
    // Each version belongs to two steps.
    weight: 2 + Math.ceil(has / charactersOfARecord),
    difference() {
      if (versions) known = differenceOf(table, ...versions, outside)
      versions = null
      return known
    },
  }
}

/** The difference between two versions, either of everything or of what was affected. */
function between(from: Zone, to: Zone, outside: OutsideAddresses, scope: ChangeScope | null): Difference {
  const had = keyed(from, outside, scope && { owners: scope.owners, entries: scope.before })
  const has = keyed(to, outside, scope && { owners: scope.owners, entries: scope.after })
  return {
    from: from.serial,
    to: to.serial,
    fromSoa: from.soa,
    toSoa: to.soa,
    removed: without(had, has),
    added: without(has, had),
  }
}
