// The substitution in a NAPTR record (RFC 3402): secondaries check it, and refuse a whole zone if one is malformed.
import { splitFields } from '../fields.ts'
import { octetsOf } from '../octets.ts'

const malformed =
  'The regexp must be a delimiter, a regular expression, a replacement and flags, as in !^.*$!sip:a@b.example!.'

// The fields are canonical; the fifth is the regexp, in quotes.
export function naptrProblem(texts: string[]): string | null {
  const fields = splitFields(texts[4] ?? '')
  const octets = fields.ok ? octetsOf(fields.value[0]?.raw ?? '') : fields
  if (!octets.ok) return octets.detail
  const text = octets.value.toString('latin1')
  if (text === '') return null
  const delimiter = text[0] ?? ''
  if (/[0-9\\i]/.test(delimiter) || text.includes('\0')) return malformed
  const parts = partsBetween(text.slice(1), delimiter)
  if (parts?.length !== 3 || !/^i*$/.test(parts[2] ?? '')) return malformed
  const [expression = '', replacement = ''] = parts
  const groups = groupsIn(expression)
  if (groups === null) return 'The regular expression of the regexp is not valid.'
  const highest = Math.max(0, ...Array.from(replacement.matchAll(/\\(.)/gs), ([, digit = '']) => Number(digit) || 0))
  return highest > groups || /\\0/.test(replacement)
    ? 'The replacement refers to a group that does not exist in the regexp.'
    : null
}

// An escaped delimiter doesn't end a part.
function partsBetween(text: string, delimiter: string): string[] | null {
  const parts = ['']
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? ''
    const last = parts.length - 1
    if (character === delimiter) parts.push('')
    else if (character === '\\' && last < 2) {
      if (at + 1 === text.length) return null
      parts[last] += character + text[++at]
    } else parts[last] += character
  }
  return parts
}

const piece = '(?:[$^]|[^*+?{}|()^$](?:[*+?]|\\{\\d{1,2}(?:,\\d{0,2})?\\})?)'
const branches = `${piece}+(?:\\|${piece}+)*`
const innermost = new RegExp(`\\(${branches}\\)`)
const whole = new RegExp(`^${branches}$`)

// The number of groups in an extended regular expression; null if POSIX or some implementations wouldn't accept it.
function groupsIn(expression: string): number | null {
  let rest = expression.replace(/\\\D|\[\^?(?:\[:(?:alpha|digit|alnum|upper|lower):\]|[^\][^])+\]/g, 'x')
  let groups = 0
  for (; innermost.test(rest); groups++) rest = rest.replace(innermost, 'x')
  if (/[\\[\]]/.test(rest) || !whole.test(rest)) return null
  try {
    new RegExp(expression)
    return groups
  } catch {
    return null
  }
}
