// $GENERATE in zone files, as BIND defines it: one line that expands to many records.
import { type Field, splitFields } from '../fields.ts'
import { type Parsed, parsed, refused } from '../parsed.ts'
import { fileTtl } from '../ttl.ts'
import type { ZoneEntry } from './zone-file-entries.ts'

export type Template = {
  start: number
  stop: number
  step: number
  owner: string
  // TTL, class and type, in which nothing is replaced.
  head: Field[]
  rdata: string
}

const maxNumber = 2 ** 31 - 1
const maxWidth = 255
const usage = '$GENERATE needs a range, a name, a type and a value, for example $GENERATE 1-10 host-$ A 192.0.2.$.'

function readRange(text: string): Pick<Template, 'start' | 'stop' | 'step'> | null {
  const found = /^(\d{1,10})-(\d{1,10})(?:\/(\d{1,10}))?$/.exec(text)
  if (!found) return null
  const [start = 0, stop = 0, step = 1] = found.slice(1).map((digits) => (digits === undefined ? 1 : Number(digits)))
  return start <= stop && stop <= maxNumber && step > 0 ? { start, stop, step } : null
}

export function readTemplate({ fields, problem }: ZoneEntry): Parsed<Template> {
  if (problem) return refused(problem.detail)
  const [, range, owner, ...more] = fields
  const bounds = range && !range.quoted ? readRange(range.raw) : null
  const isHead = ({ raw, quoted }: Field) =>
    !quoted && (fileTtl(raw) !== null || /^(?:IN|CH|CHAOS|HS|HESIOD|CLASS\d+)$/i.test(raw))
  const type = more.findIndex((field) => !isHead(field))
  if (!bounds || !owner || owner.quoted || type < 0 || more.length < type + 2) return refused(usage)
  const [value, ...others] = more.slice(type + 1)
  // A value with spaces is one quoted field, in which quotes are escaped once more.
  const rdata =
    value?.quoted && others.length === 0
      ? value.raw.replaceAll('\\"', '"')
      : [value, ...others].map((field) => (field?.quoted ? `"${field.raw}"` : (field?.raw ?? ''))).join(' ')
  return parsed({ ...bounds, owner: owner.raw, head: more.slice(0, type + 1), rdata })
}

// Hexadecimal digits from last to first, as labels of a reverse name.
function nibbles(number: number, width: number, mode: string): string {
  const digits = number.toString(16).padStart(Math.ceil(width / 2), '0')
  const labels = [...(mode === 'N' ? digits.toUpperCase() : digits)].reverse().join('.')
  return width % 2 === 0 && labels.length < width ? `${labels}.` : labels
}

function numberText(number: number, width: number, mode: string): string {
  if (mode === 'n' || mode === 'N') return nibbles(number, width, mode)
  const base = mode === 'd' ? 10 : mode === 'o' ? 8 : 16
  const digits = number.toString(base).padStart(width, '0')
  return mode === 'X' ? digits.toUpperCase() : digits
}

// Replaces $ and ${offset,width,base} by the number; $$ is a dollar.
function replaced(text: string, iteration: number): Parsed<string> {
  let problem: string | null = null
  const result = text.replace(/\\.|\$\$|\$(?:\{([^}]*)\}?)?/gs, (found: string, modifier: string | undefined) => {
    if (found.startsWith('\\')) return found
    if (found === '$$') return '$'
    if (modifier === undefined) return `${iteration}`
    const [, offset, width = '0', mode = 'd'] = /^(-?\d{1,10})(?:,(\d{1,5}))?(?:,([doxXnN]))?$/.exec(modifier) ?? []
    const number = iteration + Number(offset)
    if (offset === undefined || Number(width) > maxWidth || number < 0 || number > maxNumber) {
      problem ??= 'A $ may be followed by offset, width and base, for example {0,3,d}. The result must not be negative.'
      return ''
    }
    return numberText(number, Number(width), mode)
  })
  return problem === null ? parsed(result) : refused(problem)
}

// The entry for one number, as if it were written out.
export function generatedEntry(entry: ZoneEntry, { owner, head, rdata }: Template, number: number): Parsed<ZoneEntry> {
  const name = replaced(owner, number)
  const value = replaced(rdata, number)
  if (!name.ok) return name
  if (!value.ok) return value
  const fields = splitFields(value.value)
  if (!fields.ok) return fields
  const field = { raw: name.value, quoted: false, adjacent: false }
  return parsed({ ...entry, fields: [field, ...head, ...fields.value], inheritsOwner: false })
}
