// Orders field errors as the schema does, each field once, and removes invalid fields from a body.
import type { FieldError } from '../../../platform/errors.ts'

type Schema = { properties?: Record<string, Schema>; items?: Schema; maxItems?: number }

const partsOf = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))

/** The position of a field in each object and array on its path. Unknown fields come last. */
function positionOf(schema: Schema, pointer: string): number[] {
  let at: Schema | undefined = schema
  return partsOf(pointer).map((part) => {
    const names = Object.keys(at?.properties ?? {})
    const position = names.length === 0 && /^\d+$/.test(part) ? Number(part) : names.indexOf(part)
    at = at?.items ?? at?.properties?.[part]
    return position === -1 ? Number.MAX_SAFE_INTEGER : position
  })
}

function compare(one: number[], other: number[]): number {
  const differs = one.findIndex((position, index) => position !== other[index])
  if (differs === -1) return one.length - other.length
  return one[differs]! - (other[differs] ?? -1)
}

/** In schema order; of several errors for one field, the first stays. */
export function inOrder(schema: unknown, errors: readonly FieldError[]): FieldError[] {
  const unique = new Map<string, FieldError>()
  for (const error of errors) if (!unique.has(error.pointer)) unique.set(error.pointer, error)
  return [...unique.values()]
    .map((error) => ({ error, position: positionOf((schema ?? {}) as Schema, error.pointer) }))
    .sort((a, b) => compare(a.position, b.position))
    .map(({ error }) => error)
}

/** Removes invalid fields from a body. Remaining array items keep their index. */
export function soundPart(body: unknown, errors: readonly FieldError[]): unknown {
  for (const { pointer } of errors) {
    const parts = partsOf(pointer)
    const last = parts.pop()
    if (last === undefined) continue
    let holder = body as Record<string, unknown> | undefined
    for (const part of parts) holder = holder?.[part] as Record<string, unknown> | undefined
    if (Array.isArray(holder)) (holder as unknown[])[Number(last)] = undefined
    else if (holder && Object.hasOwn(holder, last)) delete holder[last]
  }
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {}
}

/** Truncates arrays that are too long and reports them: one error each instead of one per item. */
export function cutLong(schema: unknown, body: unknown, pointer = '#'): FieldError[] {
  const { properties = {}, items, maxItems = Number.POSITIVE_INFINITY } = schema as Schema
  if (Array.isArray(body)) {
    const length = body.length
    if (length > maxItems) body.length = maxItems
    const detail = `has ${length} items; the limit is ${maxItems}`
    const own: FieldError[] = length > maxItems ? [{ in: 'body', pointer, code: 'too_long', detail }] : []
    return items ? [...own, ...body.flatMap((item, index) => cutLong(items, item, `${pointer}/${index}`))] : own
  }
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(properties).flatMap(([name, field]) =>
    Object.hasOwn(body, name) ? cutLong(field, (body as Record<string, unknown>)[name], `${pointer}/${name}`) : [],
  )
}
