// Which records may exist together in a zone, and which records a delegation hides.
import { absoluteName, nameWithinZone } from './names.ts'
import { isNamedType, type PolicyRefusal, policyOf, type RecordType } from './record-types.ts'

export type PlacedRecord = { id?: string; type: RecordType; name: string; value: string }

export type ConflictCode =
  | PolicyRefusal['code']
  | 'duplicate'
  | 'only_one'
  | 'beside_cname'
  | 'beside_alias'
  | 'beside_dname'
  | 'beside_null_mx'
  | 'second_spf'
  | 'below_dname'
  | 'mx_at_cname'
  | 'ds_without_ns'

export type Conflict<T> =
  | { kind: 'policy'; code: ConflictCode; detail: string; record?: undefined }
  | { kind: 'existing'; code: ConflictCode; detail: string; record: T }

function excludes(one: RecordType, other: RecordType): boolean {
  const excluded = policyOf(one).excludes
  return one !== other && (excluded === 'every other type' || excluded.includes(other))
}

function policyConflict(candidate: PlacedRecord): Conflict<never> | null {
  const { apex, wildcard } = policyOf(candidate.type)
  const refusal = candidate.name === '@' ? apex : /^\*(?:\.|$)/.test(candidate.name) ? wildcard : undefined
  return refusal ? { kind: 'policy', ...refusal } : null
}

// Names and values are canonical. A candidate with an id replaces the existing record with that id.
export function conflict<T extends PlacedRecord>(candidate: PlacedRecord, existing: Iterable<T>): Conflict<T> | null {
  const policy = policyConflict(candidate)
  if (policy) return policy
  const { type, name, value, id } = candidate
  let found: Conflict<T> | null = null
  for (const record of existing) {
    if (record.name !== name || (id !== undefined && record.id === id)) continue
    if (record.type === type && record.value === value) {
      // A duplicate is the most specific reason, so it is reported before any other.
      return { kind: 'existing', code: 'duplicate', detail: `This ${type} record already exists at ${name}.`, record }
    }
    found ??= conflictBetween(candidate, record)
  }
  return found
}

const nullMx = '0 .'
const isSpf = ({ type, value }: PlacedRecord) => type === 'TXT' && /^"v=spf1[ "]/i.test(value)

// Groups records that the rules treat alike, so that one of each kind at a name can represent all of them.
export function kindOf({ type, name, value }: PlacedRecord): string {
  if (!isNamedType(type)) return 'numbered'
  if (type === 'MX') return value === nullMx ? 'null MX' : type
  return isSpf({ type, name, value }) ? 'SPF' : type
}

function conflictBetween<T extends PlacedRecord>(candidate: PlacedRecord, record: T): Conflict<T> | null {
  const { type, name, value } = candidate
  const because = (code: ConflictCode, detail: string) => ({ kind: 'existing' as const, code, detail, record })
  if (record.type === type) {
    if (policyOf(type).single) {
      return because(
        'only_one',
        `The name ${name} already has a record of type ${type} and can have only one. Change that one.`,
      )
    }
    if (type === 'MX' && (value === nullMx || record.value === nullMx)) {
      return because(
        'beside_null_mx',
        `MX 0 . says that ${name} accepts no email, so it must be the only MX record there (RFC 7505).`,
      )
    }
    if (isSpf(candidate) && isSpf(record)) {
      return because(
        'second_spf',
        `The name ${name} already has an SPF record. With two, receivers reject its email (RFC 7208). Change that one.`,
      )
    }
    return null
  }
  if (!excludes(type, record.type) && !excludes(record.type, type)) return null
  const either = (one: RecordType) => type === one || record.type === one
  if (either('CNAME')) {
    return because(
      'beside_cname',
      `A CNAME record must be the only record at its name; ${name} has a record of type ${record.type}.`,
    )
  }
  return either('DNAME')
    ? because(
        'beside_dname',
        `A DNAME record cannot exist at a delegation; ${name} has a record of type ${record.type}.`,
      )
    : because(
        'beside_alias',
        `An ALIAS record answers with addresses of its own; ${name} has a record of type ${record.type}.`,
      )
}

// A record that redirects a name must not point to itself, nor a DNAME to a name below itself.
export function pointsAtItself({ type, name, value }: PlacedRecord, zone: string): string | null {
  if (type !== 'CNAME' && type !== 'ALIAS' && type !== 'DNAME') return null
  const own = absoluteName(name, zone)
  if (value !== own && !(type === 'DNAME' && value.endsWith(`.${own}`))) return null
  return `The ${type} record of ${own} points at ${value === own ? 'itself' : 'a name below itself'}.`
}

// The records at a name of the zone.
export type RecordsAt<T> = (name: string) => Iterable<T>

// What is wrong with a record, given the records at its own name and at others.
export function placementConflict<T extends PlacedRecord>(
  { type, name, value }: PlacedRecord,
  zone: string,
  recordsAt: RecordsAt<T>,
): Conflict<T> | null {
  const find = (at: string, wanted: RecordType) => [...recordsAt(at)].find((record) => record.type === wanted)
  if (type === 'DS' && !find(name, 'NS')) {
    const detail = `A DS record belongs beside the NS records of a delegation; ${name} has none.`
    return { kind: 'policy', code: 'ds_without_ns', detail }
  }
  const target = type === 'MX' ? nameWithinZone(value.slice(value.indexOf(' ') + 1), zone) : null
  const alias = target === null ? undefined : find(target, 'CNAME')
  if (alias) {
    const detail = `An MX record must not point at a CNAME record (RFC 2181), which ${target} has; point it at ${alias.value}.`
    return { kind: 'existing', code: 'mx_at_cname', detail, record: alias }
  }
  for (const above of namesAbove(name)) {
    const record = find(above, 'DNAME')
    const detail = `The DNAME record of ${above} covers all names below it, so ${name} cannot have records.`
    if (record) return { kind: 'existing', code: 'below_dname', detail, record }
  }
  return null
}

// The names above a name, up to the apex.
export function* namesAbove(name: string): Generator<string> {
  if (name === '@') return
  let isOwn = true
  for (const one of namesUpwards(name)) {
    if (!isOwn) yield one
    isOwn = false
  }
  yield '@'
}

export type HiddenRecord<T> = { record: T; delegation: string }

// From the name itself up to, but excluding, the apex.
function* namesUpwards(name: string): Generator<string> {
  for (let rest = name; ; rest = rest.slice(rest.indexOf('.') + 1)) {
    yield rest
    if (!rest.includes('.')) return
  }
}

// Resolvers are referred from names below a delegation to its nameservers, and never see these records.
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

// Applies the same rules to a whole zone in one pass: first each record against those before it, then across names.
export function conflictsWithin<T extends PlacedRecord>(
  records: Iterable<T>,
  zone: string,
): { record: T; conflict: Conflict<T> }[] {
  const kept = new Map<string, { firstOfKind: Map<string, T>; same: Map<string, T> }>()
  const conflicts: { record: T; conflict: Conflict<T> }[] = []
  const clear: T[] = []
  for (const record of records) {
    const atName = kept.get(record.name) ?? { firstOfKind: new Map<string, T>(), same: new Map<string, T>() }
    kept.set(record.name, atName)
    const same = atName.same.get(`${record.type} ${record.value}`)
    // One record represents its kind, so that a name with many records doesn't take quadratic time.
    const found = conflict({ ...record, id: undefined }, same ? [same] : atName.firstOfKind.values())
    if (found) {
      conflicts.push({ record, conflict: found })
      continue
    }
    const kind = kindOf(record)
    if (!atName.firstOfKind.has(kind)) atName.firstOfKind.set(kind, record)
    atName.same.set(`${record.type} ${record.value}`, record)
    clear.push(record)
  }
  const recordsAt = (name: string) => kept.get(name)?.firstOfKind.values() ?? []
  for (const record of clear) {
    const found = placementConflict(record, zone, recordsAt)
    if (found) conflicts.push({ record, conflict: found })
  }
  return conflicts
}
