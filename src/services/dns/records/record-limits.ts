// Limits of records per zone, types per name, and records and bytes per set. The trigger `dns_record_set` enforces the
// same limits.
import { type Db, raised } from '../../../platform/database/database.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { selectRecordLimits } from '../sql/zone-statements.ts'

export type RecordLimits = { recordsPerZone: number; recordsPerSet: number; bytesPerSet: number }

export async function recordsAllowed(db: Db, accountId: string): Promise<RecordLimits> {
  const [row] = await selectRecordLimits(db, { accountId })
  const { recordsPerZone, recordsPerSet, bytesPerSet } = row!
  // Null means no limit.
  const max = (limit: string | null) => (limit === null ? Number.POSITIVE_INFINITY : Number(limit))
  return { recordsPerZone: max(recordsPerZone), recordsPerSet: max(recordsPerSet), bytesPerSet: max(bytesPerSet) }
}

type Set = { type: string; name: string }
type Excess = { limit: 'recordsPerSet' | 'bytesPerSet' | 'typesPerName'; used: number; max: number }

// BIND rejects zones with more than a hundred types at a name, including signatures and the types that signing adds.
const typesPerName = 40

const units = { recordsPerSet: 'records', bytesPerSet: 'bytes of values' }

function detailOf({ type, name }: Set, { limit, used, max }: Excess): string {
  if (limit === 'typesPerName') return `The name ${name} would have records of ${used} types; the limit is ${max}.`
  return `The name ${name} would have ${used} ${units[limit]} of type ${type}; the limit is ${max}.`
}

/** The maximum size of a value in a message, like the SQL function `record_octets`. */
function octetsOf({ type, value }: { type: string; value: string }): number {
  // Values are longer as text than in a message, except for the addresses in these two types.
  const hints = type === 'SVCB' || type === 'HTTPS' ? value.split(',').length - 1 : 0
  return Buffer.byteLength(value) + 16 * hints
}

/** Returns a function that counts records and reports one that exceeds a limit of its set or name. */
export function countSets<T extends Set & { value: string }>({ recordsPerSet, bytesPerSet }: RecordLimits) {
  const sets = new Map<string, { records: number; bytes: number }>()
  const types = new Map<string, number>()
  return (record: T): Excess | null => {
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

/** The error for a record that exceeds a limit; `pointer` is its position in the body. */
export function setOverflow(record: Set, excess: Excess, pointer: string): Fault {
  const detail = detailOf(record, excess)
  const errors: FieldError[] = [{ in: 'body', pointer, code: 'quota_exceeded', detail }]
  return new Fault('quota_exceeded', detail, { ...excess, errors })
}

/** Translates an error of the trigger, which also sees concurrent commits. Returns null for other errors. */
export function setRefusal(error: unknown): Fault | null {
  const found = /(recordsPerSet|bytesPerSet|typesPerName) (\d+) (\d+) (\S+) (\S+)/.exec(raised(error, 'BQ002') ?? '')
  if (!found) return null
  const [, limit, used, max, type = '', name = ''] = found
  const excess = { limit: limit as Excess['limit'], used: Number(used), max: Number(max) }
  return new Fault('quota_exceeded', detailOf({ type, name }, excess), { ...excess, cause: error })
}
