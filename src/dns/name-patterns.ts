// Patterns of names in a zone: a name, or one whose first or last label is a star that matches one or more labels.
import { relativeName } from './names.ts'
import { type Parsed, parsed, refused, shown } from './parsed.ts'

/** The pattern in canonical form, relative to the zone. `*` alone matches every name below the domain. */
export function parseNamePattern(input: string, zone: string): Parsed<string> {
  if (!input.endsWith('.*')) return relativeName(input, zone)
  const start = relativeName(input.slice(0, -2), zone)
  if (!start.ok) return start
  if (start.value === '@' || start.value.startsWith('*')) {
    return refused(`The pattern ${shown(input)} must be a name; only its first or last label may be *.`)
  }
  return parsed(`${start.value}.*`)
}

/** Whether the pattern matches every name that `inner`, a name or a pattern, matches. */
export function coversName(pattern: string, inner: string): boolean {
  if (pattern === inner) return true
  if (pattern === '*') return inner !== '@'
  if (pattern.endsWith('.*')) return inner.startsWith(pattern.slice(0, -1))
  return pattern.startsWith('*.') && inner.endsWith(pattern.slice(1))
}
