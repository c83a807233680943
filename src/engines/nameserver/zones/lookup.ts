// Looks up a question in a zone: wildcards, delegations, CNAME chains, and negative answers.

import { maxNameOctets, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { markType } from './apex.ts'
import { nameRdata, type Rdata, textRdata } from './rdata.ts'
import { type Rrset, setOf, type Zone, type ZoneNode } from './zone.ts'

/** `from` is the wildcard that a set was synthesized from. */
export type OwnedSet = { owner: string; set: Rrset; from?: string }

/** What a signed answer has to prove. The closest encloser is the nearest existing ancestor. */
export type Proof =
  | { kind: 'no name' | 'no data of wildcard' | 'expanded'; name: string; encloser: string }
  | { kind: 'no data' | 'no signer'; name: string }

export type LookupResult = {
  rcode: number
  authoritative: boolean
  answer: OwnedSet[]
  authority: OwnedSet[]
  additional: OwnedSet[]
  /** Whether the same question has the same answer until the zone changes. */
  cacheable: boolean
  /** Whether a wildcard produced it, so that any number of names have this answer. */
  wildcard: boolean
  /**
   * For a nonexistent name: whether all nonexistent names with the same closest encloser have this answer, except for the name
   * in it. Whatever depends on more of the name sets this to false.
   */
  general: boolean
  /** Only for clients that request signatures from a signed zone; otherwise null. */
  proofs: Proof[] | null
  /** An outside name whose addresses aren't known yet; the answer is SERVFAIL until then. */
  awaits: { target: string; type: number; owner: string } | null
}

export type Addresses = { rdatas: readonly Rdata[]; ttl: number }

/** What an answer may need from outside the zone. */
export type OutsideAddresses = {
  /** Addresses of a host at the edge; null for every other name. */
  edge(target: string, type: number): Addresses | null
}

const maxChain = 8
/** A signed zone has these beside a CNAME (RFC 4035, section 2.5), so a query for them doesn't follow it. */
const signingTypes: ReadonlySet<number> = new Set([typeNumbers.RRSIG, typeNumbers.NSEC])
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
  // The suffix must begin at a label.
  let at = 0
  const start = name.length - origin.length
  while (at < start) at += 1 + name.charCodeAt(at)
  return at === start
}

/** The closest existing ancestor of a nonexistent name; null for a name that exists. `name` is in the zone. */
export function encloserOf(zone: Zone, name: string): string | null {
  let encloser = name
  while (!zone.nodes.has(encloser)) encloser = encloser.slice(1 + encloser.charCodeAt(0))
  return encloser === name ? null : encloser
}

type Match =
  | { kind: 'node'; node: ZoneNode; wildcard: string | null }
  | { kind: 'cut'; owner: string; node: ZoneNode }
  | { kind: 'dname'; owner: string; set: Rrset }
  | { kind: 'none'; encloser: string }

/** Walks down from the apex, because a delegation hides everything below it. `wildcard` is the parent of a matching wildcard. */
function locate(zone: Zone, name: string, type: number): Match {
  const exact = zone.nodes.get(name)
  if (exact && !zone.hasCuts) return { kind: 'node', node: exact, wildcard: null }
  const starts: number[] = []
  const end = name.length - zone.origin.length
  for (let at = 0; at < end; at += 1 + name.charCodeAt(at)) starts.push(at)
  let encloser = zone.origin
  for (let index = starts.length - 1; index >= 0; index--) {
    const owner = name.slice(starts[index])
    const node = zone.nodes.get(owner)
    if (!node) {
      // There are no names below a DNAME, so it is at the closest encloser.
      const dname = setOf(zone.nodes.get(encloser)!, typeNumbers.DNAME)
      if (dname) return { kind: 'dname', owner: encloser, set: dname }
      const source = zone.nodes.get(`\x01*${encloser}`)
      return source ? { kind: 'node', node: source, wildcard: encloser } : { kind: 'none', encloser }
    }
    // The DS set belongs to the parent, so it is answered from this side of the cut.
    if (node.cut && !(index === 0 && type === typeNumbers.DS)) return { kind: 'cut', owner, node }
    encloser = owner
  }
  return { kind: 'node', node: exact!, wildcard: null }
}

/** The state of one lookup. */
type Work = { zone: Zone; outside: OutsideAddresses; found: LookupResult }
type AliasNode = ZoneNode & { alias: NonNullable<ZoneNode['alias']> }

/** The addresses of an ALIAS target; null while they are unknown. */
function flatten(node: AliasNode, type: number, { zone, outside, found }: Work): Addresses | null {
  let { target } = node.alias
  for (let step = 0; step < maxChain; step++) {
    const edge = outside.edge(target, type)
    if (edge) return edge
    const match = isWithin(target, zone.origin) ? locate(zone, target, type) : null
    if (match?.kind === 'none') return { rdatas: [], ttl: 0 }
    // Not authoritative: another zone, or below a delegation.
    if (match?.kind !== 'node') {
      const { addresses } = node.alias
      if (!addresses) found.awaits = { target, type, owner: zone.owner }
      return addresses && (addresses.get(type) ?? { rdatas: [], ttl: 0 })
    }
    const set = setOf(match.node, type)
    if (set) return set
    const next = match.node.alias?.target ?? setOf(match.node, typeNumbers.CNAME)?.rdatas[0]?.names[0]
    if (next === undefined) return { rdatas: [], ttl: 0 }
    target = next
  }
  return null
}

function refer(zone: Zone, owner: string, node: ZoneNode, found: LookupResult): void {
  const set = setOf(node, typeNumbers.NS)!
  found.authority.push({ owner, set })
  if (found.proofs) {
    const signer = setOf(node, typeNumbers.DS)
    if (signer) found.authority.push({ owner, set: signer })
    else found.proofs.push({ kind: 'no signer', name: owner })
  }
  for (const { names } of set.rdatas) {
    const host = zone.nodes.get(names[0]!)
    if (!host) continue
    for (const type of [typeNumbers.A, typeNumbers.AAAA]) {
      const glue = setOf(host, type)
      if (glue) found.additional.push({ owner: names[0]!, set: glue })
    }
  }
}

/** The set of this type at a node, stored or synthesized. */
function setAt(node: ZoneNode, type: number, work: Work): Rrset | null {
  const set = setOf(node, type)
  if (set || !node.alias || (type !== typeNumbers.A && type !== typeNumbers.AAAA)) return set
  const addresses = flatten(node as AliasNode, type, work)
  const { found } = work
  if (!addresses) {
    found.rcode = rcodes.SERVFAIL
    found.cacheable = false
    return null
  }
  if (addresses.rdatas.length === 0) return null
  return { type, ttl: Math.min(node.alias.ttl, addresses.ttl), rdatas: addresses.rdatas }
}

/** Whether to follow a target. If it is outside or repeated, the answer ends here and the resolver continues. */
function follows(target: string, step: number, { zone, found }: Work): boolean {
  const isKnown = found.answer.some(({ owner, set }) => owner === target && set.type === typeNumbers.CNAME)
  return isWithin(target, zone.origin) && !isKnown && step + 1 < maxChain
}

/** Adds a DNAME and the CNAME that follows from it (RFC 6672); null if the resulting name would be too long. */
function redirect(found: LookupResult, owner: string, dname: { owner: string; set: Rrset }): string | null {
  const { set } = dname
  // Any number of names are below it.
  found.cacheable = false
  const isIncluded = found.answer.some((one) => one.owner === dname.owner && one.set.type === set.type)
  if (!isIncluded) found.answer.push({ owner: dname.owner, set })
  const target = owner.slice(0, -dname.owner.length) + set.rdatas[0]!.head.toString('latin1')
  if (target.length > maxNameOctets) {
    found.rcode = rcodes.YXDOMAIN
    return null
  }
  found.answer.push({ owner, set: { type: typeNumbers.CNAME, ttl: set.ttl, rdatas: [nameRdata(target)] } })
  return target
}

/** Answers ANY with one of the name's own sets (RFC 8482, section 4.1), which is signed, unlike a synthesized one. */
function anySetOf(node: ZoneNode, work: Work): Rrset | null {
  const stored = node.sets.find(({ type }) => type !== markType)
  const found = stored ?? setAt(node, typeNumbers.A, work) ?? setAt(node, typeNumbers.AAAA, work)
  return found ?? (work.found.rcode === rcodes.NOERROR ? setOf(node, markType) : null)
}

/** `name` is in the zone. Never fails, and its time only depends on the labels of the name and the chain. */
export function lookup(zone: Zone, name: string, type: number, outside: OutsideAddresses): LookupResult {
  return search(zone, { name, type, prove: false }, outside)
}

export type Question = { name: string; type: number; prove: boolean }

/** Like `lookup`. With `prove`, a signed zone also returns what has to be proved. */
export function search(zone: Zone, { name, type, prove }: Question, outside: OutsideAddresses): LookupResult {
  const found: LookupResult = {
    rcode: rcodes.NOERROR,
    authoritative: true,
    answer: [],
    authority: [],
    additional: [],
    cacheable: true,
    wildcard: false,
    general: true,
    proofs: prove && zone.signed ? [] : null,
    awaits: null,
  }
  const work = { zone, outside, found }
  let owner = name
  for (let step = 0; ; step++) {
    const match = locate(zone, owner, type)
    if (match.kind === 'cut') {
      // AA refers to the first owner name, so an answer that starts with our CNAME stays authoritative.
      if (step === 0) found.authoritative = false
      refer(zone, match.owner, match.node, found)
      return found
    }
    if (match.kind === 'none') {
      found.rcode = rcodes.NXDOMAIN
      found.authority.push({ owner: zone.origin, set: zone.negative })
      found.proofs?.push({ kind: 'no name', name: owner, encloser: match.encloser })
      return found
    }
    if (match.kind === 'dname') {
      const target = redirect(found, owner, match)
      if (target === null || type === typeNumbers.CNAME || !follows(target, step, work)) return found
      owner = target
      continue
    }
    const { node, wildcard } = match
    if (wildcard !== null) found.wildcard = true
    // The target of a CNAME may be the name of the question, if a wildcard produced both.
    if (wildcard !== null && step > 0) found.general = false
    const any = type === typeNumbers.ANY && (node.sets.length > 0 || node.alias !== null)
    const one = any && found.proofs ? anySetOf(node, work) : anySet
    const set = any ? one : setAt(node, type, work)
    const from = wildcard === null ? undefined : { from: `\x01*${wildcard}` }
    if (set) {
      found.answer.push({ owner, set, ...from })
      if (wildcard !== null) found.proofs?.push({ kind: 'expanded', name: owner, encloser: wildcard })
      return found
    }
    if (found.rcode !== rcodes.NOERROR) return found
    const chain = setOf(node, typeNumbers.CNAME)
    const target = chain?.rdatas[0]?.names[0]
    const leads = target !== undefined && !(zone.signed && signingTypes.has(type))
    if (!chain || !leads) {
      found.authority.push({ owner: zone.origin, set: zone.negative })
      if (wildcard === null) found.proofs?.push({ kind: 'no data', name: owner })
      else found.proofs?.push({ kind: 'no data of wildcard', name: owner, encloser: wildcard })
      return found
    }
    found.answer.push({ owner, set: chain, ...from })
    if (wildcard !== null) found.proofs?.push({ kind: 'expanded', name: owner, encloser: wildcard })
    if (!follows(target, step, work)) return found
    owner = target
  }
}
