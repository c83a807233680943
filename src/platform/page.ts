// Keyset pagination: the request and the result of a page. A cursor is the sort key of the last row seen.
import { Fault } from './errors.ts'

export type Order = 'asc' | 'desc'
export type PageRequest = { limit: number; order: Order; after: string[] | null }
export type PageOf<T> = { items: T[]; next: string[] | null }

/** Expects one row more than the limit, which shows whether there is a next page. */
export function pageOf<R, T>(
  found: R[],
  page: PageRequest,
  view: (row: R) => T,
  keys: (row: R) => string[],
): PageOf<T> {
  const kept = found.slice(0, page.limit)
  const more = found.length > page.limit
  return { items: kept.map(view), next: more ? keys(kept[kept.length - 1]!) : null }
}

/** The part of a `findMany` that reads a page in the order of ids, and one row more. */
export function byId({ after, order, limit }: PageRequest) {
  const id = after === null ? {} : order === 'desc' ? { lt: after[0]! } : { gt: after[0]! }
  return { where: { id }, orderBy: { id: order }, take: limit + 1 }
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
