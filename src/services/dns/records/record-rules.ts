// What a record must be before it is stored: readable, canonical, and allowed beside the others at its name.
import type { Static } from '@sinclair/typebox'
import { type Conflict, conflict, type PlacedRecord, pointsAtItself } from '../../../dns/conflicts.ts'
import { relativeName } from '../../../dns/names.ts'
import { parseRdata } from '../../../dns/rdata/rdata.ts'
import { type RecordType, recordTypes, ttlLimits } from '../../../dns/record-types.ts'
import { recordTypeOf, typeRefusal } from '../../../dns/type-names.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { badField, type Sound } from '../../../platform/fields.ts'
import type { CreateDnsRecord } from '../../../schemas/dns-records.ts'

export type RecordInput = Static<typeof CreateDnsRecord>
export type RecordDraft = { type: RecordType; name: string; value: string; ttl: number; comment: string | null }

/**
 * The record in canonical form, or an error for each invalid field; `at` is the record's place in the body. There is
 * neither for an input that lacks fields and whose others are valid.
 */
export function readDraft(zone: string, input: Sound<RecordInput>, at = '#'): RecordDraft | FieldError[] {
  const { ttl = ttlLimits.default, comment } = input
  const type = input.type === undefined ? undefined : recordTypeOf(input.type)
  const name = input.name === undefined ? null : relativeName(input.name, zone)
  const value = !type || input.value === undefined ? null : parseRdata(type, input.value, zone)
  const errors: FieldError[] = []
  if (type === null) errors.push(badField(`${at}/type`, 'not_allowed', refusedType(input.type!)))
  if (name && !name.ok) errors.push(badField(`${at}/name`, 'bad_format', name.detail))
  if (value && !value.ok) errors.push(badField(`${at}/value`, 'bad_format', value.detail))
  if (!type || !name?.ok || !value?.ok) return errors
  const draft = { type, name: name.value, value: value.value, ttl, comment: comment?.trim() || null }
  const circle = pointsAtItself(draft, zone)
  return circle ? [badField(`${at}/value`, 'points_at_itself', circle)] : draft
}

function refusedType(type: string): string {
  return typeRefusal(type) ?? `The record type ${type} is not supported.`
}

/** What is wrong with a record by itself, whatever else is in the zone. */
export function draftErrors(draft: RecordDraft | FieldError[], at = '#'): FieldError[] {
  if (Array.isArray(draft)) return draft
  const placementConflict = conflict(draft, [])
  const place = placementConflict && placementError(placementConflict, at)
  return place ? [place] : []
}

/** Types that may not be at the same name as `type`; computed by the rules, so that SQL has the same ones. */
const excludedBy = new Map<RecordType, RecordType[]>(recordTypes.map((type) => [type, excludedOf(type)]))

function excludedOf(type: RecordType): RecordType[] {
  const beside = (other: RecordType) =>
    conflict({ type, name: 'a', value: '1' }, [{ type: other, name: 'a', value: '2' }])
  return recordTypes.filter(beside)
}

export function excludedTypes(type: RecordType): RecordType[] {
  return excludedBy.get(type) ?? excludedOf(type)
}

/** The error of a record that is refused whatever the other records are, such as NS at the apex. */
export function placementError(found: Conflict<unknown>, at = '#'): FieldError | null {
  // A CNAME at the apex conflicts with records: the SOA and NS that the service adds. A DS lacks other records.
  if (found.kind !== 'policy' || found.code === 'cname_at_apex' || found.code === 'ds_without_ns') return null
  return { in: 'body', pointer: `${at}/name`, code: found.code, detail: found.detail }
}

export function recordConflict(found: Conflict<PlacedRecord & { id: string }>, errors?: FieldError[]): Fault {
  const { record } = found
  return new Fault('record_conflict', found.detail, {
    ...(record && { record: { id: record.id, type: record.type, name: record.name, value: record.value } }),
    ...(errors && { errors }),
  })
}
