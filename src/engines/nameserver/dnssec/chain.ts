// The names of a signed zone in the order of its denial chain, and the NSEC or NSEC3 record of each.
import { nameOfKey, orderKey } from '../../../dns/dnssec/canonical.ts'
import { hashInOwner, nsec3Hash, nsec3Owner, nsec3Rdata, nsecRdata } from '../../../dns/dnssec/denial.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { turn } from '../../../platform/pauses.ts'
import { octetsRdata } from '../zones/apex.ts'
import { lookup, type OutsideAddresses, type OwnedSet, type Proof } from '../zones/lookup.ts'
import { SortedTexts } from '../zones/sorted-texts.ts'
import { type Rrset, type SignedParts, setOf, type Zone, type ZoneNode } from '../zones/zone.ts'

export type SignedZone = Zone & { signed: SignedParts }

const addressTypes = [typeNumbers.A, typeNumbers.AAAA]
const hashOctets = 20
const entriesInARun = 1_000
const entriesPerStep = 50
const mergedInAStep = 1_000
/** Sorts after every name with the same hash. */
const last = '\uffff'

const isHashed = ({ signed }: SignedZone) => signed.signing.denial === 'nsec3'

/** The position of a name in the chain; with NSEC3, its hash followed by the name. */
export function entryOf(zone: SignedZone, name: string): string {
  return isHashed(zone) ? nsec3Hash(name) + name : orderKey(name)
}

export function nameOfEntry(zone: SignedZone, entry: string): string {
  return isHashed(zone) ? entry.slice(hashOctets) : nameOfKey(entry)
}

/** The signed sets of a name as they are answered; at a delegation, those of the parent. */
export function setsAt(zone: Zone, owner: string, node: ZoneNode, outside: OutsideAddresses): Rrset[] {
  if (node.cut) return node.sets.filter(({ type }) => type === typeNumbers.DS)
  if (!node.alias) return node.sets
  const addresses = addressTypes.flatMap((type) => {
    if (setOf(node, type)) return []
    const { rcode, answer } = lookup(zone, owner, type, outside)
    return rcode === 0 ? answer.filter((one) => one.owner === owner && one.set.type === type) : []
  })
  return [...node.sets, ...addresses.map(({ set }) => set)]
}

/** Whether a name is below a delegation, and so not part of the zone. */
function isHidden(zone: Zone, name: string): boolean {
  if (!zone.hasCuts) return false
  const end = name.length - zone.origin.length
  for (let at = 1 + name.charCodeAt(0); at < end; at += 1 + name.charCodeAt(at)) {
    if (zone.nodes.get(name.slice(at))?.cut) return true
  }
  return false
}

/** With NSEC3, every name that exists; with NSEC, those with records. */
export function isInChain(zone: SignedZone, name: string, node: ZoneNode | undefined): boolean {
  if (!node || (!isHashed(zone) && node.sets.length === 0 && !node.alias)) return false
  return !isHidden(zone, name)
}

const inOrder = (one: string, other: string) => (one < other ? -1 : 1)

export function buildChain(zone: SignedZone): SortedTexts {
  const entries: string[] = []
  for (const [name, node] of zone.nodes) if (isInChain(zone, name, node)) entries.push(entryOf(zone, name))
  return SortedTexts.from(entries.sort(inOrder))
}

/** The same in steps, because a large zone would block other work for too long. */
export async function buildChainInSteps(zone: SignedZone): Promise<SortedTexts> {
  let runs: string[][] = [[]]
  let step = 0
  for (const [name, node] of zone.nodes) {
    if (isInChain(zone, name, node)) runs.at(-1)!.push(entryOf(zone, name))
    if (++step % entriesPerStep === 0) await turn()
    if (runs.at(-1)!.length < entriesInARun) continue
    runs.at(-1)!.sort(inOrder)
    runs.push([])
  }
  runs.at(-1)!.sort(inOrder)
  while (runs.length > 1) {
    const longer: string[][] = []
    for (let at = 0; at < runs.length; at += 2) longer.push(await merged(runs[at]!, runs[at + 1] ?? []))
    runs = longer
  }
  return SortedTexts.from(runs[0]!)
}

async function merged(one: readonly string[], other: readonly string[]): Promise<string[]> {
  const all: string[] = []
  for (let [left, right] = [0, 0]; left < one.length || right < other.length; ) {
    const isLeft = right === other.length || (left < one.length && one[left]! < other[right]!)
    if (all.push(isLeft ? one[left++]! : other[right++]!) % mergedInAStep === 0) await turn()
  }
  return all
}

export function chainOf(zone: SignedZone): SortedTexts {
  zone.signed.chain ??= buildChain(zone)
  return zone.signed.chain
}

// A large zone has more records than we can keep.
const maxCached = 5_000

/** Caches what was created for a zone, up to a limit. */
export function cacheValue<V>(cache: Map<string, V>, key: string, value: V): V {
  if (cache.size >= maxCached) cache.clear()
  cache.set(key, value)
  return value
}

/** The NSEC or NSEC3 record of an entry. */
export function denialAt(zone: SignedZone, entry: string, outside: OutsideAddresses): OwnedSet {
  const { denials } = zone.signed.cache
  return denials.get(entry) ?? cacheValue(denials, entry, makeDenial(zone, entry, outside))
}

function makeDenial(zone: SignedZone, entry: string, outside: OutsideAddresses): OwnedSet {
  const name = nameOfEntry(zone, entry)
  const node = zone.nodes.get(name)!
  const types = setsAt(zone, name, node, outside).map(({ type }) => type)
  const isSigned = types.length > 0
  if (node.cut) types.push(typeNumbers.NS)
  const next = chainOf(zone).after(entry)
  const { ttl } = zone.negative
  if (!isHashed(zone)) {
    const octets = nsecRdata(nameOfKey(next), [...types, typeNumbers.RRSIG, typeNumbers.NSEC])
    return { owner: name, set: { type: typeNumbers.NSEC, ttl, rdatas: [octetsRdata(octets)] } }
  }
  const octets = nsec3Rdata(next.slice(0, hashOctets), isSigned ? [...types, typeNumbers.RRSIG] : types)
  const owner = nsec3Owner(entry.slice(0, hashOctets), zone.origin)
  return { owner, set: { type: typeNumbers.NSEC3, ttl, rdatas: [octetsRdata(octets)] } }
}

/** The entry of a name, or the one before its position. */
function entryFor(zone: SignedZone, name: string): string {
  return chainOf(zone).atOrBefore(isHashed(zone) ? nsec3Hash(name) + last : orderKey(name))
}

/** The entry that a signed set belongs to. */
export function entryOfSet(zone: SignedZone, owner: string, type: number): string {
  if (type !== typeNumbers.NSEC3) return entryFor(zone, owner)
  return chainOf(zone).atOrBefore(hashInOwner(owner) + last)
}

/** The ancestor of a name that is one label longer than the encloser. */
function nextCloser(name: string, encloser: string): string {
  let at = 0
  for (let next = 0; name.length - next > encloser.length; next += 1 + name.charCodeAt(next)) at = next
  return name.slice(at)
}

/** The names whose entries prove something, according to RFC 4035 (3.1.3) and RFC 5155 (7.2). */
function namesProving(zone: SignedZone, proof: Proof): string[] {
  if (!('encloser' in proof)) return [proof.name]
  const { kind, name, encloser } = proof
  const wildcard = kind === 'expanded' ? [] : [`\x01*${encloser}`]
  if (!isHashed(zone)) return [name, ...wildcard]
  const above = kind === 'expanded' ? [] : [encloser]
  return [...above, nextCloser(name, encloser), ...wildcard]
}

/** The distinct entries that prove all of these. */
export function entriesProving(zone: SignedZone, proofs: readonly Proof[]): Set<string> {
  const names = proofs.flatMap((proof) => namesProving(zone, proof))
  return new Set(names.map((name) => entryFor(zone, name)))
}
