// Pages of lists that are filtered by columns with few values, in SQL.
import type { Order, PageRequest } from './page.ts'

/**
 * The ids of a page, from an index on the columns and then the id. Each column has the values to look for; one that is
 * not filtered by has all of its values. The page is merged from those of every combination, so that it costs the same
 * however many rows there are, and however few of them match.
 */
export function facetedPage(
  table: string,
  order: Order,
  columns: Record<string, string>,
  p: { after: string; limit: string },
): string {
  const facets = Object.entries(columns)
  const values = facets.map(([column, array]) => `unnest(${array}) AS by_${column}(value)`)
  const matches = facets.map(([column]) => `t.${column} = by_${column}.value`)
  return `
    SELECT page.id FROM ${values.join(', ')}, LATERAL (
      SELECT t.id FROM ${table} t WHERE ${matches.join(' AND ')} AND t.id ${order === 'asc' ? '>' : '<'} ${p.after}
      ORDER BY t.id ${order} LIMIT ${p.limit}) page
    ORDER BY page.id ${order} LIMIT ${p.limit}`
}

/** One statement for each direction. */
export function byOrder<S>(define: (order: Order) => S): Record<Order, S> {
  return { asc: define('asc'), desc: define('desc') }
}

/** The parameters of a page by id, and one row more; `prefix` is that of the ids. */
export function pageBounds({ after, order, limit }: PageRequest, prefix: string) {
  // Ids begin with digits for some thousand years.
  return { after: after?.[0] ?? (order === 'asc' ? '' : `${prefix}_z`), limit: limit + 1 }
}
