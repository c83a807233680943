// Ranks the stored encodings by a client's Accept-Encoding header.
import type { Encoding } from '../../../platform/artifacts/artifacts.ts'

/** Our order of preference among encodings with equal weights. */
export const encodings = ['br', 'gzip', 'identity'] as const
export type AnyEncoding = Encoding | 'identity'

/** Encodings from most to least preferred. Always includes identity. */
export type Preference = readonly AnyEncoding[]

const identityOnly: Preference = ['identity']
// Browsers send only a few distinct values. The limit keeps clients from filling memory with invented ones.
const cache = new Map<string, Preference>()
const maxCached = 500

export function preferenceOf(header: string | undefined): Preference {
  if (header === undefined) return identityOnly
  let preference = cache.get(header)
  if (preference === undefined) {
    preference = parse(header)
    if (cache.size >= maxCached) cache.clear()
    if (header.length <= 200) cache.set(header, preference)
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
    // Identity is acceptable unless refused, but a client that lists other encodings prefers them.
    weights.get(encoding) ?? any ?? (encoding === 'identity' ? 0.0001 : 0)
  const accepted = encodings.filter((encoding) => weightOf(encoding) > 0)
  accepted.sort((a, b) => weightOf(b) - weightOf(a))
  // If no encoding is acceptable, the plain file is more useful than a 406.
  return accepted.includes('identity') ? accepted : [...accepted, 'identity']
}
