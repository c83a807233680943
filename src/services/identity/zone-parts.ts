// Parts of zones, which tokens and keys may be narrowed to: a domain, patterns of names, and types of records.
import { coversName } from '../../dns/name-patterns.ts'

/** Empty lists stand for all names and all types. */
export type ZonePart = { domainId: string; names: readonly string[]; types: readonly string[] }

/** Null: no such bound. */
export type ZoneParts = readonly ZonePart[] | null

/** The parts in the row of a token. */
export function partsIn({ zoneParts }: { zoneParts: unknown }): ZoneParts {
  return zoneParts as ZoneParts
}

export function isWhole({ names, types }: ZonePart): boolean {
  return names.length === 0 && types.length === 0
}

/** Whether a name, or all that a pattern stands for, is in the part. */
function hasName({ names }: ZonePart, name: string): boolean {
  return names.length === 0 || names.some((pattern) => coversName(pattern, name))
}

export function hasRecord(part: ZonePart, { name, type }: { name: string; type: string }): boolean {
  return hasName(part, name) && (part.types.length === 0 || part.types.includes(type))
}

function covers(wide: ZonePart, narrow: ZonePart): boolean {
  if (wide.domainId !== narrow.domainId) return false
  const names = wide.names.length === 0 || (narrow.names.length > 0 && narrow.names.every((one) => hasName(wide, one)))
  const isAny = wide.types.length === 0
  return names && (isAny || (narrow.types.length > 0 && narrow.types.every((type) => wide.types.includes(type))))
}

/** Whether all of the part is in one of the others. */
export function isCovered(part: ZonePart, by: ZoneParts): boolean {
  return by === null || by.some((wide) => covers(wide, part))
}

/** What both lists have, where an empty one stands for all; null if that is nothing. */
function both(one: readonly string[], other: readonly string[], has: (wide: string, inner: string) => boolean) {
  if (one.length === 0 || other.length === 0) return one.length === 0 ? other : one
  const inOther = one.filter((inner) => other.some((wide) => has(wide, inner)))
  const inOne = other.filter((inner) => one.some((wide) => has(wide, inner)))
  return inOther.length + inOne.length === 0 ? null : [...new Set([...inOther, ...inOne])]
}

/** What is left of the parts of a token within those of its parent; of patterns that overlap, nothing is. */
export function withinParts(parts: ZoneParts, parent: ZoneParts): ZoneParts {
  if (parts === null || parent === null) return parts ?? parent
  return parts.flatMap((part) => {
    if (isCovered(part, parent)) return [part]
    return parent.flatMap((bound) => {
      if (bound.domainId !== part.domainId) return []
      const names = both(part.names, bound.names, coversName)
      const types = both(part.types, bound.types, (wide, inner) => wide === inner)
      return names && types ? [{ domainId: part.domainId, names, types }] : []
    })
  })
}
