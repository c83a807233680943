// Which of the stored encodings a client accepts, by its Accept-Encoding.
import type { Encoding } from '../../../platform/artifacts/artifacts.ts'

/** In order of preference where a client gives equal weights; the position is the index of a variant. */
export const encodings = ['br', 'gzip', 'identity'] as const
export type AnyEncoding = Encoding | 'identity'

/** Encodings from most to least preferred; identity is always included as the last resort. */
export type Preference = readonly AnyEncoding[]

const identityOnly: Preference = ['identity']
// Browsers send only a few distinct values; the bound keeps a client from filling the memory with invented ones.
const known = new Map<string, Preference>()
const maxKnown = 500

export function preferenceOf(header: string | undefined): Preference {
  if (header === undefined) return identityOnly
  let preference = known.get(header)
  if (preference === undefined) {
    preference = parse(header)
    if (known.size >= maxKnown) known.clear()
    if (header.length <= 200) known.set(header, preference)
  }
  return preference
}

function parse(header: string): Preference {
  const weights = new Map<string, number>()
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    if (name === '') continue
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = quality === undefined ? 1 : Number(quality.slice(2))
    weights.set(name === 'x-gzip' ? 'gzip' : name, weight >= 0 && weight <= 1 ? weight : 0)
  }
  const any = weights.get('*')
  const weightOf = (encoding: AnyEncoding) =>
    // Identity is acceptable unless refused, but a client that lists encodings prefers those.
    weights.get(encoding) ?? any ?? (encoding === 'identity' ? 0.0001 : 0)
  const wanted = encodings.filter((encoding) => weightOf(encoding) > 0)
  wanted.sort((a, b) => weightOf(b) - weightOf(a))
  // If no encoding is acceptable, the file without encoding is more useful than a 406.
  return wanted.includes('identity') ? wanted : [...wanted, 'identity']
}
