// Parses times in a query string.
import { Fault, type FieldCode, type FieldError } from '../errors.ts'

export function refuseTime(name: 'from' | 'to', detail: string, code: FieldCode = 'out_of_range'): never {
  const errors: FieldError[] = [{ in: 'query', pointer: `#/${name}`, code, detail }]
  throw new Fault('validation_failed', `${name}: ${detail}`, { errors })
}

const earliestMs = Date.UTC(2000, 0)
const yearMs = 366 * 86_400_000

export function readTime(name: 'from' | 'to', given: string): number {
  const ms = Date.parse(given)
  if (Number.isNaN(ms)) refuseTime(name, 'is not a valid time', 'bad_format')
  if (ms < earliestMs || ms > Date.now() + yearMs) refuseTime(name, 'must be 2000 or later, and at most a year ahead')
  return ms
}
