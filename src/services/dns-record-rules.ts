// What a record must be before it is stored: readable, canonical, and allowed beside the others at its name.
import type { Static } from '@sinclair/typebox'
import { type Conflict, conflict, type PlacedRecord } from '../dns/conflicts.ts'
import { relativeName } from '../dns/names.ts'
import { parseRdata } from '../dns/rdata.ts'
import { type RecordType, recordTypes, ttlLimits } from '../dns/record-types.ts'
import { Fault, type FieldError } from '../errors.ts'
import type { CreateDnsRecord } from '../schemas/dns-records.ts'

export type RecordInput = Static<typeof CreateDnsRecord>
export type RecordDraft = { type: RecordType; name: string; value: string; ttl: number; comment: string | null }

/** The record in canonical form, or every field that keeps it from being one; `at` is where it stands in the body. */
export function readDraft(zone: string, input: RecordInput, at = '#'): RecordDraft | FieldError[] {
  const name = relativeName(input.name, zone)
  const value = parseRdata(input.type, input.value, zone)
  if (name.ok && value.ok) {
    return {
      type: input.type,
      name: name.value,
      value: value.value,
      ttl: input.ttl ?? ttlLimits.default,
      comment: input.comment?.trim() || null,
    }
  }
  const errors: FieldError[] = []
  if (!name.ok) errors.push({ in: 'body', pointer: `${at}/name`, code: 'bad_format', detail: name.detail })
  if (!value.ok) errors.push({ in: 'body', pointer: `${at}/value`, code: 'bad_format', detail: value.detail })
  return errors
}

/** Types of which no record may stand beside one of `type`: asked of the rules themselves, so that SQL cannot drift. */
const excludedBy = new Map<RecordType, RecordType[]>(
  recordTypes.map((type) => [
    type,
    recordTypes.filter((other) => conflict({ type, name: 'a', value: '1' }, [{ type: other, name: 'a', value: '2' }])),
  ]),
)

export function excludedTypes(type: RecordType): RecordType[] {
  return excludedBy.get(type)!
}

/** A refusal that depends on no other record and that other name or type would cure, such as NS at the apex. */
export function refusedPlace(found: Conflict<unknown>, at = '#'): FieldError | null {
  // A CNAME at the apex does conflict with records that are there: the service's own SOA and NS.
  if (found.kind !== 'policy' || found.code === 'cname_at_apex') return null
  return { in: 'body', pointer: `${at}/name`, code: found.code, detail: found.detail }
}

export function recordConflict(found: Conflict<PlacedRecord & { id: string }>, errors?: FieldError[]): Fault {
  const { record } = found
  return new Fault('record_conflict', found.detail, {
    ...(record && { record: { id: record.id, type: record.type, name: record.name, value: record.value } }),
    ...(errors && { errors }),
  })
}

export function invalidRecord(errors: FieldError[]): Fault {
  const [first] = errors
  const detail =
    errors.length === 1 ? first!.detail : `${errors.length} fields are not valid; the first: ${first!.detail}`
  return new Fault('validation_failed', detail, { errors })
}
