// The zones that a token is narrowed to, as callers name and read them.
import type { Static } from '@sinclair/typebox'
import { parseNamePattern } from '../../dns/name-patterns.ts'
import { canonicalName } from '../../dns/names.ts'
import { recordTypeOf } from '../../dns/type-names.ts'
import type { Token } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import type { FieldError } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import type { TokenZone } from '../../schemas/tokens.ts'
import { type Actor, partsIn, type ZonePart } from '../identity/index.ts'

type ZoneView = Static<typeof TokenZone>

/** Empty stands for all, as null does for callers. */
export const orNull = <T>(items: readonly T[]) => (items.length > 0 ? [...items] : null)

/** Reads the names of domains once for all tokens; a domain that is gone is in no view. */
export async function zoneViews(db: Db, tokens: readonly Token[]): Promise<(token: Token) => ZoneView[] | null> {
  const ids = [...new Set(tokens.flatMap((token) => partsIn(token) ?? []).map(({ domainId }) => domainId))]
  const select = { id: true, name: true }
  const found = ids.length > 0 ? await db.domain.findMany({ where: { id: { in: ids } }, select }) : []
  const names = new Map(found.map(({ id, name }) => [id, name]))
  return (token) =>
    partsIn(token)?.flatMap(({ domainId, names: patterns, types }) => {
      const domain = names.get(domainId)
      return domain === undefined
        ? []
        : [{ domain, names: orNull(patterns), types: orNull(types) as ZoneView['types'] }]
    }) ?? null
}

/** Patterns in canonical form; each that is none is refused by its place. */
export function readPatterns(
  patterns: readonly (string | undefined)[] | null | undefined,
  zone: string,
  at: string,
): { names: string[]; errors: FieldError[] } {
  const names = new Set<string>()
  const errors: FieldError[] = []
  for (const [index, pattern] of (patterns ?? []).entries()) {
    if (pattern === undefined) continue
    const read = parseNamePattern(pattern, zone)
    if (read.ok) names.add(read.value)
    else errors.push(badField(`${at}/${index}`, 'bad_format', read.detail))
  }
  return { names: [...names], errors }
}

/** Types as they are called here; each that there is not is refused by its place. */
export function readTypes(
  types: readonly (string | undefined)[] | null | undefined,
  at: string,
): { types: string[]; errors: FieldError[] } {
  const known = (types ?? []).map((type) => (type === undefined ? undefined : recordTypeOf(type)))
  const errors = known.flatMap((type, index) =>
    type === null ? badField(`${at}/${index}`, 'not_allowed', `the record type ${types![index]} is not supported`) : [],
  )
  return { types: [...new Set(known.filter((type) => typeof type === 'string'))], errors }
}

/** A wildcard is a name in its parent's zone and has none of its own. */
function nameOf(domain: string | undefined): string | undefined {
  const name = domain === undefined ? undefined : canonicalName(domain)
  return name?.ok && !name.value.startsWith('*') ? name.value : undefined
}

/** The parts that a caller names; `isAllowed` tells whether one is within what may be granted. */
export async function resolveZones(
  db: Db,
  actor: Actor,
  zones: Sound<ZoneView[]>,
  isAllowed: (part: ZonePart) => boolean,
): Promise<ZonePart[]> {
  const { accountId, projectIds } = actor
  const wanted = zones.map((zone) => nameOf(zone?.domain))
  const name = { in: wanted.filter((one) => one !== undefined) }
  const where = { accountId, name, ...(projectIds && { projectId: { in: [...projectIds] } }) }
  const found = await db.domain.findMany({ where, select: { id: true, name: true } })
  const ids = new Map(found.map((domain) => [domain.name, domain.id]))
  const errors: FieldError[] = []
  const parts = zones.flatMap((zone, index): ZonePart[] => {
    const at = `#/zones/${index}`
    const domain = wanted[index]
    if (zone?.domain === undefined) return []
    const domainId = domain === undefined ? undefined : ids.get(domain)
    if (domain === undefined || domainId === undefined) {
      errors.push(badField(`${at}/domain`, 'not_found', `there is no zone ${zone.domain}`))
      return []
    }
    const patterns = readPatterns(zone.names, domain, `${at}/names`)
    const read = readTypes(zone.types, `${at}/types`)
    errors.push(...patterns.errors, ...read.errors)
    if (patterns.errors.length + read.errors.length > 0) return []
    const part = { domainId, names: patterns.names, types: read.types }
    if (!isAllowed(part)) errors.push(badField(at, 'widens', 'exceeds what the token may grant'))
    return [part]
  })
  refuseFields(errors)
  return parts
}
