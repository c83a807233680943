// The signed sets of a zone, and their signatures.
import { canonicalSet, fingerprintOf, rrsigHead, type SignedSet } from '../../../dns/dnssec/canonical.ts'
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { octetsRdata } from '../zones/apex.ts'
import { type LookupResult, type OutsideAddresses, type OwnedSet, search } from '../zones/lookup.ts'
import type { Rdata } from '../zones/rdata.ts'
import { signatureKey } from '../zones/signing.ts'
import { type Rrset, rdatasOf, type Zone } from '../zones/zone.ts'
import {
  cacheValue,
  chainOf,
  denialAt,
  entriesProving,
  entryOf,
  nameOfEntry,
  type SignedZone,
  setsAt,
} from './chain.ts'

export const isSigned = (zone: Zone): zone is SignedZone => zone.signed !== null

const octetsOf = ({ head, names, tail }: Rdata) =>
  names.length === 0 && tail.length === 0
    ? head
    : Buffer.concat([head, ...names.map((name) => Buffer.from(name, 'latin1')), tail])

export function signedSetOf({ owner, set, from = owner }: OwnedSet): SignedSet {
  return { owner: from, type: set.type, ttl: set.ttl, rdatas: rdatasOf(set).map(octetsOf) }
}

/** The sets at some entries of the chain, and the chain's records at those entries. */
export function* setsIn(zone: SignedZone, entries: Iterable<string>, outside: OutsideAddresses): Generator<OwnedSet> {
  for (const entry of entries) {
    const owner = nameOfEntry(zone, entry)
    for (const set of setsAt(zone, owner, zone.nodes.get(owner)!, outside)) yield { owner, set }
    yield denialAt(zone, entry, outside)
  }
}

export const setsOf = (zone: SignedZone, outside: OutsideAddresses) => setsIn(zone, chainOf(zone), outside)

/** The RRSIG records of a set; null if it isn't signed. `ttl` is that of the answer. */
export function signaturesOf(zone: SignedZone, owned: OwnedSet, ttl = owned.set.ttl): OwnedSet | null {
  const { signatures } = zone.signed.cache
  // A name has one set per type.
  const key = `${owned.set.type} ${owned.from ?? owned.owner}`
  const rdatas = signatures.get(key) ?? signatureRdatas(zone, owned)
  if (rdatas.length === 0) return null
  cacheValue(signatures, key, rdatas)
  return { owner: owned.owner, set: { type: typeNumbers.RRSIG, ttl, rdatas } }
}

export function signatureRdatas(zone: SignedZone, owned: OwnedSet): readonly Rdata[] {
  const set = signedSetOf(owned)
  const fingerprint = fingerprintOf(canonicalSet(set))
  const { signing, signatures } = zone.signed
  const rdatas: Rdata[] = []
  for (const [index, { tag }] of signing.keys.filter((key) => key.signing).entries()) {
    const octets = signatures.get(signatureKey(index, fingerprint))
    if (octets === undefined) continue
    const made = Buffer.from(octets, 'latin1')
    const validity = { inception: made.readUInt32BE(0), expiry: made.readUInt32BE(4) }
    const head = rrsigHead(set, validity, { tag, signer: zone.origin })
    rdatas.push(octetsRdata(Buffer.concat([head, made.subarray(8)])))
  }
  return rdatas
}

/** Adds the signatures to a lookup result, and the records that prove nonexistence. */
export function withSignatures(zone: SignedZone, found: LookupResult, outside: OutsideAddresses): LookupResult {
  const signed = (one: OwnedSet): OwnedSet[] => {
    const own = one.set === zone.negative ? { ...one, set: zone.soa } : one
    const signatures = signaturesOf(zone, own, one.set.ttl)
    return signatures ? [one, signatures] : [one]
  }
  const proving = [...entriesProving(zone, found.proofs ?? [])].map((entry) => denialAt(zone, entry, outside))
  return {
    ...found,
    answer: found.answer.flatMap(signed),
    authority: [...found.authority, ...proving].flatMap(signed),
  }
}

/** The answer to a question for an NSEC record or signatures of a name; null if there are none. */
export function addedAt(zone: SignedZone, name: string, type: number, outside: OutsideAddresses): Rrset | null {
  const node = zone.nodes.get(name)
  const entry = entryOf(zone, name)
  if (!node || !chainOf(zone).has(entry)) return null
  const denial = denialAt(zone, entry, outside)
  if (type === typeNumbers.NSEC) return denial.set.type === type ? denial.set : null
  const own = denial.owner === name ? [denial] : []
  const all = [...setsAt(zone, name, node, outside).map((set) => ({ owner: name, set })), ...own]
  const rdatas = all.flatMap((one) => signaturesOf(zone, one)?.set.rdatas ?? [])
  return rdatas.length === 0 ? null : { type, ttl: zone.negative.ttl, rdatas }
}

/** Looks up a question like `lookup`, and adds signatures if requested. */
export function lookupSigned(
  zone: SignedZone,
  { name, type, dnssecOk }: { name: string; type: number; dnssecOk: boolean },
  outside: OutsideAddresses,
): LookupResult {
  const found = search(zone, { name, type, prove: dnssecOk }, outside)
  const isAdded = type === typeNumbers.NSEC || type === typeNumbers.RRSIG
  const isMissing = found.answer.length === 0 && found.authoritative && found.rcode === rcodes.NOERROR
  const added = isAdded && isMissing ? addedAt(zone, name, type, outside) : null
  const all: LookupResult = added
    ? { ...found, answer: [{ owner: name, set: added }], authority: [], proofs: [], general: false }
    : found
  return dnssecOk ? withSignatures(zone, all, outside) : all
}

/**
 * The common answer for all nonexistent names below another name, in the gap of one of them. It contains the general name,
 * which is below the same name, and the proofs of that one.
 */
export function lookupBelowSigned(
  zone: SignedZone,
  { name, general, type }: { name: string; general: string; type: number },
  outside: OutsideAddresses,
): LookupResult {
  const found = search(zone, { name: general, type, prove: true }, outside)
  const proofs = found.proofs!.map((proof) => (proof.name === general ? { ...proof, name } : proof))
  return withSignatures(zone, { ...found, proofs }, outside)
}
