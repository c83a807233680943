// What a change of a large signed zone touches: the names that changed and their neighbours in the chain. All others keep
// their records and their signatures.
import { generatedNames } from '../../../services/dns/zones.ts'
import type { OutsideAddresses } from '../lookup.ts'
import { insideAliases } from '../transfer/changed-lines.ts'
import { keyOf, type RecordsByName, recordsOf } from '../zone-records.ts'
import { chainOf, entryOf, isInChain, type SignedZone } from './chain.ts'
import type { Touched } from './signing.ts'
import type { SortedTexts } from './sorted-texts.ts'

export type LargeVersion = { zone: SignedZone; records: RecordsByName }

// Each costs some lookups.
const highestAliases = 100

/** A name and all between it and the apex, which may come or go with it. */
function* path(key: string, origin: string): Generator<string> {
  for (let at = 0; at < key.length - origin.length; at += 1 + key.charCodeAt(at)) yield key.slice(at)
}

/** Names that may have other records after a change of some; null if they cannot be told without the whole zone. */
function ownersOf(was: LargeVersion, is: LargeVersion, names: readonly string[], outside: OutsideAddresses) {
  const { origin } = is.zone
  const owners = new Set([origin, ...generatedNames.map((name) => keyOf(name, origin))])
  for (const name of names) for (const key of path(keyOf(name, origin), origin)) owners.add(key)
  for (const { records } of [was, is]) {
    // A challenge may copy a wildcard to the names above it.
    for (const { name } of recordsOf(records.extras)) {
      for (const key of path(keyOf(name, origin), origin)) owners.add(key).add(`\x01*${key}`)
    }
    const aliases = insideAliases(origin, records, outside)
    if (aliases.length > highestAliases) return null
    for (const name of aliases) owners.add(keyOf(name, origin))
  }
  // What is below a delegation is not in the chain, and so comes or goes with it.
  const isCut = ({ zone }: LargeVersion, key: string) => zone.nodes.get(key)?.cut ?? false
  for (const key of owners) {
    if (isCut(was, key) !== isCut(is, key) && (was.records.hasBelow(key) || is.records.hasBelow(key))) return null
  }
  return owners
}

/** Null if it cannot be told without the whole zone. The chain of the version after is set. */
export function touchedBy(
  was: LargeVersion,
  is: LargeVersion,
  names: readonly string[],
  outside: OutsideAddresses,
): Touched | null {
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
