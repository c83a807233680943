// Keyset pagination: the request and result of a page. A cursor is the sort key of the last row seen.
import { Fault } from '../errors.ts'
import { type IdPrefix, idAt } from '../ids.ts'

export type Order = 'asc' | 'desc'
/** `since` (inclusive) and `until` (exclusive) limit the creation time. */
export type PageRequest = {
  limit: number
  order: Order
  after: string[] | null
  since?: Date | undefined
  until?: Date | undefined
}
/** `last` is the key at which the next page starts, even if its rows don't exist yet. */
export type PageOf<T> = { items: T[]; last: string[] | null; hasMore: boolean }

/** Expects one row more than the limit, which shows whether there is a next page. */
export function pageOf<R, T>(
  found: R[],
  page: PageRequest,
  view: (row: R) => T,
  keys: (row: R) => string[],
): PageOf<T> {
  const rows = found.slice(0, page.limit)
  const end = rows[rows.length - 1]
  return { items: rows.map(view), last: end ? keys(end) : page.after, hasMore: found.length > page.limit }
}

/** The range of ids of the page. Ids contain the creation time. */
export function idBounds({ after, order, since, until }: PageRequest, prefix: IdPrefix) {
  const [low, high] = order === 'asc' ? [after?.[0], undefined] : [undefined, after?.[0]]
  const defined = (bounds: (string | undefined)[]) => bounds.filter((bound) => bound !== undefined).sort()
  return {
    above: defined([low, since && idAt(prefix, since)]).at(-1),
    below: defined([high, until && idAt(prefix, until)]).at(0),
  }
}

/** The part of a `findMany` that reads a page in id order, and one row more. */
export function byId(page: PageRequest, prefix: IdPrefix) {
  const { above, below } = idBounds(page, prefix)
  const id = { ...(above !== undefined && { gt: above }), ...(below !== undefined && { lt: below }) }
  return { where: { id }, orderBy: { id: page.order }, take: page.limit + 1 }
}

/** Matches text that contains `search`, ignoring case. */
export function containing(search: string) {
  return { contains: search.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' as const }
}

export function encodeCursor(list: string, order: Order, keys: string[]): string {
  return Buffer.from(JSON.stringify([list, order, ...keys])).toString('base64url')
}

export function decodeCursor(cursor: string, list: string, order: Order, keyCount: number): string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const wellFormed =
      Array.isArray(parts) &&
      parts.length === keyCount + 2 &&
      parts.every(
        (part) => typeof part === 'string' && part.length <= 600 && !part.includes('\0') && part.isWellFormed(),
      )
    if (wellFormed && parts[0] === list && parts[1] === order) return parts.slice(2)
  } catch {
    // Not JSON: refused below like every other invalid cursor.
  }
  throw new Fault('invalid_cursor')
}
