// How many records a zone, how many types a name, and how many records and octets a set may have; the trigger
// `dns_record_set` has the same rule.
import { type Db, raised } from '../../../platform/database/database.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { selectRecordLimits } from '../sql/zone-statements.ts'

export type RecordLimits = { recordsPerZone: number; recordsPerSet: number; bytesPerSet: number }

export async function recordsAllowed(db: Db, accountId: string): Promise<RecordLimits> {
  const [row] = await selectRecordLimits(db, { accountId })
  const { recordsPerZone, recordsPerSet, bytesPerSet } = row!
  // Null is no limit.
  const max = (limit: string | null) => (limit === null ? Number.POSITIVE_INFINITY : Number(limit))
  return { recordsPerZone: max(recordsPerZone), recordsPerSet: max(recordsPerSet), bytesPerSet: max(bytesPerSet) }
}

type Set = { type: string; name: string }
type Over = { limit: 'recordsPerSet' | 'bytesPerSet' | 'typesPerName'; used: number; max: number }

// BIND takes no zone in which a name has more than a hundred, with those of the signatures and what signing adds.
const typesPerName = 40

const units = { recordsPerSet: 'records', bytesPerSet: 'bytes of values' }

function detailOf({ type, name }: Set, { limit, used, max }: Over): string {
  if (limit === 'typesPerName') return `The name ${name} would have records of ${used} types; the limit is ${max}.`
  return `The name ${name} would have ${used} ${units[limit]} of type ${type}; the limit is ${max}.`
}

/** What a value takes in a message, or more; the function `record_octets` of the database says the same. */
function octetsOf({ type, value }: { type: string; value: string }): number {
  // Values are longer as text than in a message, but for addresses in these two.
  const hints = type === 'SVCB' || type === 'HTTPS' ? value.split(',').length - 1 : 0
  return Buffer.byteLength(value) + 16 * hints
}

/** Counts records set by set, and tells which one was too much for its set, or its set for its name. */
export function countSets<T extends Set & { value: string }>({ recordsPerSet, bytesPerSet }: RecordLimits) {
  const sets = new Map<string, { records: number; bytes: number }>()
  const types = new Map<string, number>()
  return (record: T): Over | null => {
    const key = `${record.name} ${record.type}`
    const set = sets.get(key) ?? { records: 0, bytes: 0 }
    sets.set(key, set)
    const used = (types.get(record.name) ?? 0) + Number(set.records === 0)
    types.set(record.name, used)
    set.records++
    set.bytes += octetsOf(record)
    if (set.records === 1 && used > typesPerName) return { limit: 'typesPerName', used, max: typesPerName }
    if (set.records > recordsPerSet) return { limit: 'recordsPerSet', used: set.records, max: recordsPerSet }
    if (set.records > 1 && set.bytes > bytesPerSet) return { limit: 'bytesPerSet', used: set.bytes, max: bytesPerSet }
    return null
  }
}

/** Refuses the first record that is too much for its set; `pointer` is its place in the body. */
export function overfullSet(record: Set, over: Over, pointer: string): Fault {
  const detail = detailOf(record, over)
  const errors: FieldError[] = [{ in: 'body', pointer, code: 'quota_exceeded', detail }]
  return new Fault('quota_exceeded', detail, { ...over, errors })
}

/** The refusal of the trigger, which sees what other requests committed meanwhile; null for every other error. */
export function setRefusal(error: unknown): Fault | null {
  const found = /(recordsPerSet|bytesPerSet|typesPerName) (\d+) (\d+) (\S+) (\S+)/.exec(raised(error, 'BQ002') ?? '')
  if (!found) return null
  const [, limit, used, max, type = '', name = ''] = found
  const over = { limit: limit as Over['limit'], used: Number(used), max: Number(max) }
  return new Fault('quota_exceeded', detailOf({ type, name }, over), { ...over, cause: error })
}
