// From a question and a zone to an answer: wildcards, delegations, chains of CNAME, and the ways of saying no.
import { type Rdata, textRdata } from './rdata.ts'
import { rcodes, typeNumbers } from './wire.ts'
import { type Rrset, setOf, type Zone, type ZoneNode } from './zone.ts'

export type OwnedSet = { owner: string; set: Rrset }

export type Found = {
  rcode: number
  authoritative: boolean
  answer: OwnedSet[]
  authority: OwnedSet[]
  additional: OwnedSet[]
  /** The same question has the same answer for as long as the zone is this one. */
  cacheable: boolean
  /** Made from a wildcard: endless names have this one answer. */
  wildcard: boolean
  /** An address that must be found out first; the answer is SERVFAIL until then. */
  awaits: { target: string; type: number } | null
}

export type Addresses = { rdatas: readonly Rdata[]; ttl: number }

/** What an answer may need from outside the zone. */
export type Surroundings = {
  /** Addresses of a host of the edge; null for every other name. */
  edge(target: string, type: number): Addresses | null
  /** Addresses of a name elsewhere, an empty list if it has none; null while they are not known. */
  resolved(target: string, type: number): Addresses | null
}

const highestChain = 8
// Both strings of RFC 8482, section 4.2: CPU and an empty OS.
const anyTtl = 3600
const anySet: Rrset = {
  type: typeNumbers.HINFO,
  ttl: anyTtl,
  rdatas: [textRdata([Buffer.from('RFC8482'), Buffer.alloc(0)])],
}

export function isWithin(name: string, origin: string): boolean {
  if (name.length === origin.length) return name === origin
  if (!name.endsWith(origin)) return false
  // The suffix counts only where a label begins.
  let at = 0
  const start = name.length - origin.length
  while (at < start) at += 1 + name.charCodeAt(at)
  return at === start
}

type Place =
  | { kind: 'node'; node: ZoneNode; wildcard: boolean }
  | { kind: 'cut'; owner: string; node: ZoneNode }
  | { kind: 'none' }

/** Walks from the apex down, because a delegation hides all that stands below it. */
function place(zone: Zone, name: string, type: number): Place {
  const exact = zone.nodes.get(name)
  if (exact && !zone.hasCuts) return { kind: 'node', node: exact, wildcard: false }
  const starts: number[] = []
  const end = name.length - zone.origin.length
  for (let at = 0; at < end; at += 1 + name.charCodeAt(at)) starts.push(at)
  let encloser = zone.origin
  for (let index = starts.length - 1; index >= 0; index--) {
    const owner = name.slice(starts[index])
    const node = zone.nodes.get(owner)
    if (!node) {
      const source = zone.nodes.get(`\x01*${encloser}`)
      return source ? { kind: 'node', node: source, wildcard: true } : { kind: 'none' }
    }
    // The DS set is the parent's word about the child, so it is answered on this side of the cut.
    if (node.cut && !(index === 0 && type === typeNumbers.DS)) return { kind: 'cut', owner, node }
    encloser = owner
  }
  return { kind: 'node', node: exact!, wildcard: false }
}

/** The addresses that an ALIAS stands for; null while they are not known. */
function flatten(zone: Zone, first: string, type: number, around: Surroundings, found: Found): Addresses | null {
  let target = first
  for (let step = 0; step < highestChain; step++) {
    const edge = around.edge(target, type)
    if (edge) return edge
    const where = isWithin(target, zone.origin) ? place(zone, target, type) : null
    if (where?.kind === 'none') return { rdatas: [], ttl: 0 }
    // Not ours to say: another zone, or what stands below a delegation.
    if (where?.kind !== 'node') {
      found.cacheable = false
      const resolved = around.resolved(target, type)
      if (!resolved) found.awaits = { target, type }
      return resolved
    }
    const set = setOf(where.node, type)
    if (set) return set
    const next = where.node.alias?.target ?? setOf(where.node, typeNumbers.CNAME)?.rdatas[0]?.names[0]
    if (next === undefined) return { rdatas: [], ttl: 0 }
    target = next
  }
  return null
}

function refer(zone: Zone, owner: string, node: ZoneNode, found: Found): void {
  const set = setOf(node, typeNumbers.NS)!
  found.authority.push({ owner, set })
  for (const { names } of set.rdatas) {
    const host = zone.nodes.get(names[0]!)
    if (!host) continue
    for (const type of [typeNumbers.A, typeNumbers.AAAA]) {
      const glue = setOf(host, type)
      if (glue) found.additional.push({ owner: names[0]!, set: glue })
    }
  }
}

/** The set of this type at a node, whether it stands there or is made on the way. */
function setAt(zone: Zone, node: ZoneNode, type: number, around: Surroundings, found: Found): Rrset | null {
  const set = setOf(node, type)
  if (set || !node.alias || (type !== typeNumbers.A && type !== typeNumbers.AAAA)) return set
  const addresses = flatten(zone, node.alias.target, type, around, found)
  if (!addresses) {
    found.rcode = rcodes.SERVFAIL
    found.cacheable = false
    return null
  }
  if (addresses.rdatas.length === 0) return null
  return { type, ttl: Math.min(node.alias.ttl, addresses.ttl), rdatas: addresses.rdatas }
}

/** `name` is in the zone. Never fails, and takes no longer than the labels of the name and the chain allow. */
export function lookup(zone: Zone, name: string, type: number, around: Surroundings): Found {
  const found: Found = {
    rcode: rcodes.NOERROR,
    authoritative: true,
    answer: [],
    authority: [],
    additional: [],
    cacheable: true,
    wildcard: false,
    awaits: null,
  }
  let owner = name
  for (let step = 0; ; step++) {
    const where = place(zone, owner, type)
    if (where.kind === 'cut') {
      // After a CNAME of ours the answer is ours, although the rest of it is not.
      if (step === 0) found.authoritative = false
      refer(zone, where.owner, where.node, found)
      return found
    }
    if (where.kind === 'none') {
      found.rcode = rcodes.NXDOMAIN
      found.authority.push({ owner: zone.origin, set: zone.negative })
      return found
    }
    const { node, wildcard } = where
    if (wildcard) found.wildcard = true
    const any = type === typeNumbers.ANY && (node.sets.length > 0 || node.alias !== null)
    const set = any ? anySet : setAt(zone, node, type, around, found)
    if (set) {
      found.answer.push({ owner, set })
      return found
    }
    if (found.rcode !== rcodes.NOERROR) return found
    const chain = setOf(node, typeNumbers.CNAME)
    const target = chain?.rdatas[0]?.names[0]
    if (!chain || target === undefined) {
      found.authority.push({ owner: zone.origin, set: zone.negative })
      return found
    }
    found.answer.push({ owner, set: chain })
    const again = found.answer.some((one) => one.owner === target)
    // Outside the zone, or round in a circle: what there is so far is the answer, and the resolver goes on from it.
    if (!isWithin(target, zone.origin) || again || step + 1 >= highestChain) return found
    owner = target
  }
}
