// Which records may stand together in a zone, and which a delegation hides.
import { nameWithinZone } from './names.ts'
import { type PolicyRefusal, type RecordType, typePolicies } from './record-types.ts'

export type PlacedRecord = { id?: string; type: RecordType; name: string; value: string }

type ConflictCode = PolicyRefusal['code'] | 'duplicate' | 'only_one' | 'beside_cname' | 'beside_alias'

export type Conflict<T> =
  | { kind: 'policy'; code: ConflictCode; detail: string; record?: undefined }
  | { kind: 'existing'; code: ConflictCode; detail: string; record: T }

function excludes(one: RecordType, other: RecordType): boolean {
  const excluded = typePolicies[one].excludes
  return one !== other && (excluded === 'every other type' || excluded.includes(other))
}

function refusedByPolicy(candidate: PlacedRecord): Conflict<never> | null {
  const { apex, wildcard } = typePolicies[candidate.type]
  const refusal = candidate.name === '@' ? apex : /^\*(?:\.|$)/.test(candidate.name) ? wildcard : undefined
  return refusal ? { kind: 'policy', ...refusal } : null
}

// Names and values are canonical. A candidate with an id replaces the existing record of that id.
export function conflict<T extends PlacedRecord>(candidate: PlacedRecord, existing: Iterable<T>): Conflict<T> | null {
  const policy = refusedByPolicy(candidate)
  if (policy) return policy
  const { type, name, value, id } = candidate
  let found: Conflict<T> | null = null
  for (const record of existing) {
    if (record.name !== name || (id !== undefined && record.id === id)) continue
    if (record.type === type && record.value === value) {
      // A duplicate is the most specific reason, so it is reported before any other.
      return { kind: 'existing', code: 'duplicate', detail: `This ${type} record exists already at ${name}.`, record }
    }
    found ??= besideRefused(type, name, record)
  }
  return found
}

function besideRefused<T extends PlacedRecord>(type: RecordType, name: string, record: T): Conflict<T> | null {
  if (record.type === type) {
    if (!typePolicies[type].single) return null
    const detail = `The name ${name} has a record of type ${type} already, and can have only one; change that one.`
    return { kind: 'existing', code: 'only_one', detail, record }
  }
  if (!excludes(type, record.type) && !excludes(record.type, type)) return null
  const detail =
    type === 'CNAME' || record.type === 'CNAME'
      ? `A CNAME record must be the only record at its name; ${name} has a record of type ${record.type}.`
      : `An ALIAS record answers with addresses of its own; ${name} has a record of type ${record.type}.`
  return {
    kind: 'existing',
    code: type === 'CNAME' || record.type === 'CNAME' ? 'beside_cname' : 'beside_alias',
    detail,
    record,
  }
}

export type HiddenRecord<T> = { record: T; delegation: string }

// From the name itself up to, not including, the apex.
function* namesUpwards(name: string): Generator<string> {
  for (let rest = name; ; rest = rest.slice(rest.indexOf('.') + 1)) {
    yield rest
    if (!rest.includes('.')) return
  }
}

// Resolvers that query names below a delegation are referred to its nameservers and never see these records.
export function hiddenBelow<T extends PlacedRecord>(records: readonly T[], zone: string): HiddenRecord<T>[] {
  const delegations = new Set<string>()
  const glueNames = new Set<string>()
  for (const { type, name, value } of records) {
    if (type !== 'NS' || name === '@') continue
    delegations.add(name)
    const glue = nameWithinZone(value, zone)
    if (glue !== null) glueNames.add(glue)
  }
  const hidden: HiddenRecord<T>[] = []
  for (const record of records) {
    const { type, name } = record
    if (name === '@') continue
    // Resolvers find the delegation nearest to the apex first.
    const delegation = [...namesUpwards(name)].findLast((ancestor) => delegations.has(ancestor))
    if (delegation === undefined) continue
    if (name === delegation && (type === 'NS' || type === 'DS')) continue
    if ((type === 'A' || type === 'AAAA') && glueNames.has(name)) continue
    hidden.push({ record, delegation })
  }
  return hidden
}

// The same rules over a whole zone, in one pass: each record against those before it.
export function conflictsWithin<T extends PlacedRecord>(records: Iterable<T>): { record: T; conflict: Conflict<T> }[] {
  const kept = new Map<string, { firstOfType: Map<RecordType, T>; same: Map<string, T> }>()
  const conflicts: { record: T; conflict: Conflict<T> }[] = []
  for (const record of records) {
    const atName = kept.get(record.name) ?? { firstOfType: new Map<RecordType, T>(), same: new Map<string, T>() }
    kept.set(record.name, atName)
    const same = atName.same.get(`${record.type} ${record.value}`)
    // One record represents its type, so that a name with many records does not take quadratic time.
    const found = conflict({ ...record, id: undefined }, same ? [same] : atName.firstOfType.values())
    if (found) {
      conflicts.push({ record, conflict: found })
      continue
    }
    if (!atName.firstOfType.has(record.type)) atName.firstOfType.set(record.type, record)
    atName.same.set(`${record.type} ${record.value}`, record)
  }
  return conflicts
}
