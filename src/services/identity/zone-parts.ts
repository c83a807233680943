// Parts of zones that tokens and keys can be limited to: a domain, name patterns, and record types.
import { coversName } from '../../dns/name-patterns.ts'

/** Empty lists mean all names and all types. */
export type ZonePart = { domainId: string; names: readonly string[]; types: readonly string[] }

/** Null means no limit. */
export type ZoneParts = readonly ZonePart[] | null

/** Reads the parts from the row of a token. */
export function partsIn({ zoneParts }: { zoneParts: unknown }): ZoneParts {
  return zoneParts as ZoneParts
}

export function isWhole({ names, types }: ZonePart): boolean {
  return names.length === 0 && types.length === 0
}

/** Whether the part contains a name, or all names that a pattern matches. */
function hasName({ names }: ZonePart, name: string): boolean {
  return names.length === 0 || names.some((pattern) => coversName(pattern, name))
}

export function hasRecord(part: ZonePart, { name, type }: { name: string; type: string }): boolean {
  return hasName(part, name) && (part.types.length === 0 || part.types.includes(type))
}

function covers(wide: ZonePart, narrow: ZonePart): boolean {
  if (wide.domainId !== narrow.domainId) return false
  const names =
    wide.names.length === 0 || (narrow.names.length > 0 && narrow.names.every((name) => hasName(wide, name)))
  const isAny = wide.types.length === 0
  return names && (isAny || (narrow.types.length > 0 && narrow.types.every((type) => wide.types.includes(type))))
}

/** Whether one of the parts in `by` contains the whole part. */
export function isCovered(part: ZonePart, by: ZoneParts): boolean {
  return by === null || by.some((wide) => covers(wide, part))
}

/** The intersection of two lists, where an empty list means everything; null if it is empty. */
function intersect(a: readonly string[], b: readonly string[], has: (wide: string, inner: string) => boolean) {
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a
  const inB = a.filter((inner) => b.some((wide) => has(wide, inner)))
  const inA = b.filter((inner) => a.some((wide) => has(wide, inner)))
  return inB.length + inA.length === 0 ? null : [...new Set([...inB, ...inA])]
}

/** The parts of a token within those of its parent. Patterns that merely overlap have no intersection. */
export function withinParts(parts: ZoneParts, parent: ZoneParts): ZoneParts {
  if (parts === null || parent === null) return parts ?? parent
  return parts.flatMap((part) => {
    if (isCovered(part, parent)) return [part]
    return parent.flatMap((bound) => {
      if (bound.domainId !== part.domainId) return []
      const names = intersect(part.names, bound.names, coversName)
      const types = intersect(part.types, bound.types, (wide, inner) => wide === inner)
      return names && types ? [{ domainId: part.domainId, names, types }] : []
    })
  })
}
