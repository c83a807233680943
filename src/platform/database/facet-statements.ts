// SQL for pages of lists that are filtered by columns with few values.
import type { IdPrefix } from '../ids.ts'
import { idBounds, type Order, type PageRequest } from './page.ts'
import { int4, text } from './statement.ts'

/** Parameters of a page by id: its ids lie between the first two. */
export const pageIn = { above: text(), below: text(), limit: int4() }

type Page = { [K in keyof typeof pageIn]: string }

/**
 * Selects the ids of a page from an index on the columns followed by the id. Each column has an array of values to match;
 * a column that isn't filtered has all of its values. Merging one page per combination keeps the cost independent of the
 * number of rows and of how few match. `further` is a condition that no index supports.
 */
export function facetedPage(
  table: string,
  order: Order,
  columns: Record<string, string>,
  { further = 'true', ...p }: Page & { further?: string },
): string {
  const facets = Object.entries(columns)
  const values = facets.map(([, array], index) => `unnest(${array}) AS facet_${index}(value)`)
  const matches = facets.map(([column], index) => `${column} = facet_${index}.value`)
  return `
    SELECT page.id FROM ${values.join(', ')}, LATERAL (
      SELECT t.id FROM ${table} t WHERE ${matches.join(' AND ')} AND t.id > ${p.above} AND t.id < ${p.below} AND ${further}
      ORDER BY t.id ${order} LIMIT ${p.limit}) page
    ORDER BY page.id ${order} LIMIT ${p.limit}`
}

/** Defines one statement per sort order. */
export function byOrder<S>(define: (order: Order) => S): Record<Order, S> {
  return { asc: define('asc'), desc: define('desc') }
}

/** The values of `pageIn`, with a limit of one row more. `prefix` is that of the ids. */
export function pageBounds(page: PageRequest, prefix: IdPrefix) {
  const { above = '', below } = idBounds(page, prefix)
  // Ids will start with a digit for some thousand years.
  return { above, below: below ?? `${prefix}_z`, limit: page.limit + 1 }
}
