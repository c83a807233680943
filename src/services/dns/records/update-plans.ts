// Plans DNS updates (RFC 2136, sections 3.2 and 3.4): checks prerequisites and turns steps into changes.
import type { RecordType } from '../../../dns/record-types.ts'
import { clampedTtl } from '../../../dns/ttl.ts'
import { Fault } from '../../../platform/errors.ts'
import { invalidFields } from '../../../platform/fields.ts'
import { newId } from '../../../platform/ids.ts'
import type { PlannedChanges } from './batches.ts'
import type { RecordRow } from './dns-records.ts'
import { type RecordDraft, readDraft } from './record-rules.ts'

/**
 * A prerequisite: a name is in use or not (`type` null), has records of a type or not, or has exactly some values of a
 * type. A value is null if no zone here can have it.
 */
export type Prerequisite = { name: string; type: string | null } & ({ exists: boolean } | { value: string | null })

/** Adds a record, or deletes a record, all records of a type, or (`type` null) all records of a name. */
export type UpdateStep = { name: string } & (
  | { add: true; type: string; value: string | null; ttl: number }
  | { add: false; type: string | null; value?: string | null }
)

/** The names of response codes in RFC 2136. */
export type UpdateOutcome = ('NOERROR' | 'NXDOMAIN' | 'YXDOMAIN' | 'NXRRSET' | 'YXRRSET') | ('REFUSED' | 'NOTAUTH')

// Every zone has these records, although they are not stored.
const isImplicit = (name: string, type: string | null) =>
  name === '@' && (type === null || type === 'SOA' || type === 'NS')

/** Returns the code for an unmet prerequisite, or null. */
export function checkPrerequisites(
  prerequisites: readonly Prerequisite[],
  rows: readonly RecordRow[],
): UpdateOutcome | null {
  const exact = new Map<string, { existing: Set<string>; wanted: Set<string | null> }>()
  for (const wanted of prerequisites) {
    const { name, type } = wanted
    const existing = rows.filter((row) => row.name === name && (type === null || row.type === type))
    if ('value' in wanted) {
      const key = `${name} ${type}`
      const set = exact.get(key) ?? { existing: new Set(existing.map(({ value }) => value)), wanted: new Set() }
      exact.set(key, set)
      set.wanted.add(wanted.value)
      continue
    }
    const exists = existing.length > 0 || isImplicit(name, type)
    if (exists === wanted.exists) continue
    if (type === null) return exists ? 'YXDOMAIN' : 'NXDOMAIN'
    return exists ? 'YXRRSET' : 'NXRRSET'
  }
  for (const { existing, wanted } of exact.values()) {
    if (existing.size !== wanted.size || [...wanted].some((value) => value === null || !existing.has(value)))
      return 'NXRRSET'
  }
  return null
}

/** Applies the steps in order to the records and returns the changes. Throws for records that no zone here can have. */
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

/** Checks the record to add by the usual rules. Clamps its TTL, like an import. */
function readAddition(zone: string, { name, type, value, ttl }: Addition): RecordDraft {
  if (value === null) throw new Fault('validation_failed', `A zone can't have this record of type ${type}.`)
  const draft = readDraft(zone, { name, type: type as RecordType, value, ttl: clampedTtl(ttl) })
  if (Array.isArray(draft)) throw invalidFields(draft)
  return draft
}

/** Adds a record to those of a name. A set has one TTL (RFC 2181, 5.2), that of the last added record. */
function withRecord(at: readonly RecordRow[], draft: RecordDraft, stored: readonly RecordRow[]): RecordRow[] {
  const { name, type, value, ttl } = draft
  // A CNAME excludes other records at its name. RFC 2136 silently ignores the later one.
  if (at.some((row) => (row.type === 'CNAME') !== (type === 'CNAME'))) return [...at]
  const others = type === 'CNAME' ? [] : at.filter((row) => row.type !== type || row.value !== value)
  // A record that an earlier step deleted keeps its identity.
  const previous = stored.find((row) => row.name === name && row.type === type && row.value === value)
  const now = new Date()
  const added = previous ?? { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
  return [...others, added].map((row) => (row.type === type && row.ttl !== ttl ? { ...row, ttl, updatedAt: now } : row))
}
