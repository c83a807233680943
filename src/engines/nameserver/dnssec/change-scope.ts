// What a change of a signed zone affects: the changed names and their neighbours in the chain. All other names keep their
// records and signatures.
import { challengeType, generatedNames } from '../../../services/dns/index.ts'
import { insideAliases, linesTyped, nameOf } from '../zones/changed-lines.ts'
import type { OutsideAddresses } from '../zones/lookup.ts'
import { type ChangeScope, entriesOf, isSameSigning } from '../zones/signing.ts'
import type { SortedTexts } from '../zones/sorted-texts.ts'
import type { Zone } from '../zones/zone.ts'
import { keyOf, type ZoneRecords } from '../zones/zone-records.ts'
import { chainOf, entryOf, isInChain, type SignedZone } from './chain.ts'

export type Version = { zone: SignedZone; records: ZoneRecords }

// Each takes some lookups.
const maxAliases = 100

/** Assumes so for a small zone, where finding out takes longer. */
const hasBelow = ({ records }: Version, key: string) => typeof records === 'string' || records.hasBelow(key)

/** A name and all names between it and the apex, which may appear or disappear with it. */
function* path(key: string, origin: string): Generator<string> {
  for (let at = 0; at < key.length - origin.length; at += 1 + key.charCodeAt(at)) yield key.slice(at)
}

/** Names whose records may differ after a change of `names`; null if only the whole zone could show that. */
function ownersOf(was: Version, is: Version, names: readonly string[], outside: OutsideAddresses) {
  const { origin } = is.zone
  const owners = new Set([origin, ...generatedNames.map((name) => keyOf(name, origin))])
  for (const name of names) for (const key of path(keyOf(name, origin), origin)) owners.add(key)
  for (const { records } of [was, is]) {
    // A challenge may copy a wildcard to the names above it.
    for (const line of linesTyped(records, challengeType)) {
      for (const key of path(keyOf(nameOf(line), origin), origin)) owners.add(key).add(`\x01*${key}`)
    }
    const aliases = insideAliases(origin, records, outside)
    if (aliases.length > maxAliases) return null
    for (const name of aliases) owners.add(keyOf(name, origin))
  }
  // Names below a delegation aren't in the chain, so they appear or disappear with it.
  const isCut = ({ zone }: Version, key: string) => zone.nodes.get(key)?.cut ?? false
  for (const key of owners) {
    if (isCut(was, key) !== isCut(is, key) && (hasBelow(was, key) || hasBelow(is, key))) return null
  }
  return owners
}

/** Null if only the whole zone could show it. Sets the chain of the new version. */
export function scopeOfChange(
  was: Version,
  is: Version,
  names: readonly string[],
  outside: OutsideAddresses,
): ChangeScope | null {
  const owners = ownersOf(was, is, names, outside)
  if (!owners) return null
  const before = chainOf(was.zone)
  const [added, removed, stayed]: [string[], string[], string[]] = [[], [], []]
  for (const owner of owners) {
    const had = isInChain(was.zone, owner, was.zone.nodes.get(owner))
    const has = isInChain(is.zone, owner, is.zone.nodes.get(owner))
    if (!had && !has) continue
    const list = had && has ? stayed : has ? added : removed
    list.push(entryOf(is.zone, owner))
  }
  const after = before.change(added, removed)
  is.zone.signed.chain = after
  const entries = new Set(stayed)
  for (const moved of [...added, ...removed]) entries.add(moved).add(before.before(moved)).add(after.before(moved))
  const within = (chain: SortedTexts) => [...entries].filter((entry) => chain.has(entry))
  return { from: was.zone.serial, owners: [...owners], before: within(before), after: within(after) }
}

/** The same for two versions of a small zone; also null if more was signed again than what changed. */
export function scopeBetween(
  was: { zone: Zone; records: ZoneRecords },
  is: { zone: Zone; records: ZoneRecords },
  names: readonly string[],
  outside: OutsideAddresses,
): ChangeScope | null {
  const [before, after] = [signedOf(was), signedOf(is)]
  if (!before || !after || !isSameSigning(before.zone.signed.signing, after.zone.signed.signing)) return null
  for (const [key, octets] of entriesOf(after.zone.signed.signing.signatures)) {
    if ((before.zone.signed.signatures.get(key) ?? octets) !== octets) return null
  }
  return scopeOfChange(before, after, names, outside)
}

function signedOf({ zone, records }: { zone: Zone; records: ZoneRecords }): Version | null {
  const { signed } = zone
  return signed && { zone: { ...zone, signed }, records }
}
