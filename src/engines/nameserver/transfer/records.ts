// The single records of a zone for transfers, and the difference between two versions of a zone.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import { challengeType } from '../../../services/dns/served-zones.ts'
import { lookup, type OutsideAddresses, type OwnedSet } from '../lookup.ts'
import { type Rrset, setOf, type Zone, type ZoneNode } from '../zone.ts'
import type { ZoneSource, ZoneTable } from '../zone-table.ts'
import { changedNames, linesNamed, linesTyped, nameOf } from './changed-lines.ts'

/** From one version of a zone to a later one. Every set has one record; the SOAs are separate. */
export type Difference = {
  from: number
  to: number
  fromSoa: Rrset
  toSoa: Rrset
  removed: OwnedSet[]
  added: OwnedSet[]
}

const addressTypes = [typeNumbers.A, typeNumbers.AAAA]
// ALIAS targets are most often resolved within one round trip; a secondary waits for some seconds.
const aliasWaitMs = 2_000
const aliasPollMs = 20
const nodesInAStep = 250

function* single(owner: string, set: Rrset): Generator<OwnedSet> {
  // A set of thousands of records would not fit into a message; single records do.
  for (const rdata of set.rdatas) yield { owner, set: { type: set.type, ttl: set.ttl, rdatas: [rdata] } }
}

function* recordsAt(owner: string, { sets }: ZoneNode): Generator<OwnedSet> {
  for (const set of sets) if (set.type !== typeNumbers.SOA) yield* single(owner, set)
}

function aliasesAt(owner: string, node: ZoneNode): { owner: string; type: number }[] {
  return addressTypes.filter((type) => isAlias(node, type)).map((type) => ({ owner, type }))
}

function isAlias(node: ZoneNode, type: number): boolean {
  return node.alias !== null && setOf(node, type) === null
}

/** What the nameserver answers for an ALIAS; null while it is unknown. */
function flattened(zone: Zone, owner: string, type: number, around: OutsideAddresses): OwnedSet[] | null {
  const found = lookup(zone, owner, type, around)
  if (found.rcode !== 0) return null
  const own = found.answer.find((one) => one.owner === owner && one.set.type === type)
  return own ? [...single(owner, own.set)] : []
}

/** Everything but the SOA. Names whose addresses stay unknown are left out and reported to `onUnknown`. */
export async function zoneRecords(
  zone: Zone,
  around: OutsideAddresses,
  onUnknown: (owner: string) => void,
): Promise<OwnedSet[]> {
  const records: OwnedSet[] = []
  const aliases: { owner: string; type: number }[] = []
  let nodes = 0
  for (const [owner, node] of zone.nodes) {
    for (const one of recordsAt(owner, node)) records.push(one)
    aliases.push(...aliasesAt(owner, node))
    // Each is built and encoded here; those of a large zone take longer than others should wait.
    if (++nodes % nodesInAStep === 0) await nextTurn()
  }
  const endMs = performance.now() + aliasWaitMs
  // All lookups start before any is awaited.
  const asked = aliases.map((one) => ({ ...one, sets: flattened(zone, one.owner, one.type, around) }))
  for (const { owner, type, sets: first } of asked) {
    let sets = first
    while (!sets && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, aliasPollMs))
      sets = flattened(zone, owner, type, around)
    }
    if (sets) for (const one of sets) records.push(one)
    else onUnknown(owner)
  }
  return records
}

/** The SOA alone, without building the whole zone. */
export function soaOf(table: ZoneTable, source: ZoneSource): Rrset {
  return table.zoneOf({ ...source, records: '', live: false }).soa
}

/** Resolved addresses change without a new serial, so it is unknown which ones a secondary has. */
function isSteady({ records }: ZoneSource, around: OutsideAddresses): boolean {
  for (const line of linesTyped(records, 'ALIAS')) {
    const target = wireName(line.slice(line.lastIndexOf(' ') + 1))
    if (!around.edge(target, typeNumbers.A)) return false
  }
  return true
}

function keyed(zone: Zone, around: OutsideAddresses): Map<string, OwnedSet> {
  const records: OwnedSet[] = []
  for (const [owner, node] of zone.nodes) {
    records.push(...recordsAt(owner, node))
    for (const one of aliasesAt(owner, node)) records.push(...(flattened(zone, owner, one.type, around) ?? []))
  }
  return new Map(records.map((one) => [keyOf(one), one]))
}

function keyOf({ owner, set: { type, ttl, rdatas } }: OwnedSet): string {
  const { head, names, tail } = rdatas[0]!
  return `${type} ${ttl} ${owner}${head.toString('latin1')}${names.join('')}${tail.toString('latin1')}`
}

const without = (all: Map<string, OwnedSet>, others: Map<string, OwnedSet>) =>
  [...all].filter(([key]) => !others.has(key)).map(([, one]) => one)

/** Whether a challenge may have copied a wildcard, which is not among the lines of the names that changed. */
function copiesWildcards({ records }: ZoneSource): boolean {
  for (const line of linesTyped(records, challengeType)) if (nameOf(line).includes('.')) return true
  return false
}

/** Null if it is unknown. Only changed names are built, so a large zone costs little more than a small one. */
export function differenceOf(
  table: ZoneTable,
  before: ZoneSource,
  after: ZoneSource,
  around: OutsideAddresses,
): Difference | null {
  if (!isSteady(before, around) || !isSteady(after, around)) return null
  // The records that the platform adds depend on the records of these two names.
  const names = changedNames(before.records, after.records)?.add('@').add('www')
  if (!names) return null
  const whole = copiesWildcards(before) || copiesWildcards(after)
  if (whole && typeof after.records !== 'string') return null
  const part = (source: ZoneSource) => {
    const records = whole ? source.records : linesNamed(source.records, names).join('\n')
    return table.zoneOf({ ...source, records, live: false })
  }
  const [from, to] = [part(before), part(after)]
  const [had, has] = [keyed(from, around), keyed(to, around)]
  return {
    from: before.serial,
    to: after.serial,
    fromSoa: from.soa,
    toSoa: to.soa,
    removed: without(had, has),
    added: without(has, had),
  }
}
