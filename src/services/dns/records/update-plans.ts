// What an update asks for (RFC 2136, sections 3.2 and 3.4), worked out on the records that it names.
import type { RecordType } from '../../../dns/record-types.ts'
import { clampedTtl } from '../../../dns/ttl.ts'
import { Fault } from '../../../platform/errors.ts'
import { invalidFields } from '../../../platform/fields.ts'
import { newId } from '../../../platform/ids.ts'
import type { PlannedChanges } from './batches.ts'
import type { RecordRow } from './dns-records.ts'
import { type RecordDraft, readDraft } from './record-rules.ts'

/**
 * What must hold before anything is done: a name is in use or not (`type` null), it has records of a type or not, or
 * has exactly some values of it. A value is null where it is none that a zone here can have.
 */
export type Prerequisite = { name: string; type: string | null } & ({ exists: boolean } | { value: string | null })

/** A record to add, or what to delete: a record, all of a type, or with a `type` of null all of a name. */
export type UpdateStep = { name: string } & (
  | { add: true; type: string; value: string | null; ttl: number }
  | { add: false; type: string | null; value?: string | null }
)

/** By the names of the codes of RFC 2136. */
export type UpdateOutcome = ('NOERROR' | 'NXDOMAIN' | 'YXDOMAIN' | 'NXRRSET' | 'YXRRSET') | ('REFUSED' | 'NOTAUTH')

// The service adds these to every zone, so that they are there though nobody stored them.
const isGiven = (name: string, type: string | null) =>
  name === '@' && (type === null || type === 'SOA' || type === 'NS')

/** Why the prerequisites do not hold; null if they do. */
export function unmet(prerequisites: readonly Prerequisite[], rows: readonly RecordRow[]): UpdateOutcome | null {
  const exact = new Map<string, { held: Set<string>; wanted: Set<string | null> }>()
  for (const wanted of prerequisites) {
    const { name, type } = wanted
    const held = rows.filter((row) => row.name === name && (type === null || row.type === type))
    if ('value' in wanted) {
      const key = `${name} ${type}`
      const set = exact.get(key) ?? { held: new Set(held.map(({ value }) => value)), wanted: new Set() }
      exact.set(key, set)
      set.wanted.add(wanted.value)
      continue
    }
    const exists = held.length > 0 || isGiven(name, type)
    if (exists === wanted.exists) continue
    if (type === null) return exists ? 'YXDOMAIN' : 'NXDOMAIN'
    return exists ? 'YXRRSET' : 'NXRRSET'
  }
  for (const { held, wanted } of exact.values()) {
    if (held.size !== wanted.size || [...wanted].some((value) => value === null || !held.has(value))) return 'NXRRSET'
  }
  return null
}

/** The changes that the steps come to, one after another, from these records. Throws what a zone here cannot have. */
export function planUpdate(zone: string, steps: readonly UpdateStep[], rows: readonly RecordRow[]): PlannedChanges {
  const names = Map.groupBy(rows, (row) => row.name)
  for (const step of steps) {
    const at = names.get(step.name) ?? []
    const left = step.add ? withRecord(at, readAddition(zone, step), rows) : at.filter((row) => !isDeleted(row, step))
    names.set(step.name, left)
  }
  const plan: PlannedChanges = { deleted: [], updated: [], created: [], placed: [], errors: [] }
  const before = new Map(rows.map((row) => [row.id, row]))
  for (const row of [...names.values()].flat()) {
    const was = before.get(row.id)
    before.delete(row.id)
    if (!was) plan.created.push(row)
    else if (was.ttl !== row.ttl) plan.updated.push({ before: was, after: row })
    else continue
    plan.placed.push({ at: '#', row, grows: !was })
  }
  plan.deleted.push(...before.values())
  return plan
}

type Addition = Extract<UpdateStep, { add: true }>
type Deletion = Extract<UpdateStep, { add: false }>

function isDeleted(row: RecordRow, { type, value }: Deletion): boolean {
  return (type === null || row.type === type) && (value === undefined || row.value === value)
}

/** The record to add, by the rules for every record. Its TTL is clamped, as in an import. */
function readAddition(zone: string, { name, type, value, ttl }: Addition): RecordDraft {
  if (value === null) throw new Fault('validation_failed', `A zone can't have this record of type ${type}.`)
  const draft = readDraft(zone, { name, type: type as RecordType, value, ttl: clampedTtl(ttl) })
  if (Array.isArray(draft)) throw invalidFields(draft)
  return draft
}

/** The records of a name with one more. Sets have one TTL (RFC 2181, 5.2), that of what was added last. */
function withRecord(at: readonly RecordRow[], draft: RecordDraft, stored: readonly RecordRow[]): RecordRow[] {
  const { name, type, value, ttl } = draft
  // A CNAME and other records are never at one name: what came later is left out, without a word.
  if (at.some((row) => (row.type === 'CNAME') !== (type === 'CNAME'))) return [...at]
  const others = type === 'CNAME' ? [] : at.filter((row) => row.type !== type || row.value !== value)
  // One that was deleted a step before is the same record again.
  const known = stored.find((row) => row.name === name && row.type === type && row.value === value)
  const now = new Date()
  const added = known ?? { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
  return [...others, added].map((row) => (row.type === type && row.ttl !== ttl ? { ...row, ttl, updatedAt: now } : row))
}
