// Lists over HTTP: `limit`, `cursor`, `order`, `since` and `until` in; `hasMore`, two cursors and a Link header out.
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  decodeCursor,
  encodeCursor,
  type Order,
  type PageOf,
  type PageRequest,
} from '../../../platform/database/page.ts'
import { refuseFields } from '../../../platform/fields.ts'

type PageEnd = { hasMore: boolean; nextCursor: string | null; latestCursor: string | null }
type Query = { limit?: number; cursor?: string; order?: Order; since?: string; until?: string }

/** `keyCount` is the number of columns in the list's sort key; lists by name are ascending, others newest first. */
export function readPage(query: Query, list: string, keyCount = 1, fallback: Order = 'desc'): PageRequest {
  const order = query.order ?? fallback
  const after = query.cursor === undefined ? null : decodeCursor(query.cursor, list, order, keyCount)
  return { limit: query.limit ?? 20, order, after, ...timesIn(query) }
}

const lastMs = Date.UTC(9999, 11, 31)
const bounds = ['since', 'until'] as const

/** The pattern allows hour 25. Before 1970 and after 9999 there is nothing to distinguish. */
function timesIn(query: Query): { [Bound in (typeof bounds)[number]]?: Date } {
  const times = bounds.flatMap((name) => (query[name] === undefined ? [] : { name, ms: Date.parse(query[name]) }))
  refuseFields(
    times.flatMap(({ name, ms }) =>
      Number.isNaN(ms)
        ? { in: 'query' as const, pointer: `#/${name}`, code: 'bad_format' as const, detail: 'is not a valid time' }
        : [],
    ),
  )
  return Object.fromEntries(times.map(({ name, ms }) => [name, new Date(Math.min(Math.max(ms, 0), lastMs))]))
}

/** `found` has one key: the list's name in the response and in cursors. */
export function sendPage<K extends string, T>(
  request: FastifyRequest,
  reply: FastifyReply,
  page: PageRequest,
  found: Record<K, PageOf<T>>,
) {
  const [[list, { items, last, hasMore }]] = Object.entries(found) as [[K, PageOf<T>]]
  const reached = last && encodeCursor(list, page.order, last)
  const nextCursor = hasMore ? reached : null
  if (nextCursor) reply.header('link', `<${withCursor(request.url, nextCursor)}>; rel="next"`)
  // Nothing is ever added after the oldest item.
  const latestCursor = page.order === 'asc' ? reached : null
  return { [list]: items, hasMore, nextCursor, latestCursor } as Record<K, T[]> & PageEnd
}

/** The end of a list that is always sent whole. */
export const wholeEnd: PageEnd = { hasMore: false, nextCursor: null, latestCursor: null }

/** The URL of the next page: this one with another cursor. */
function withCursor(url: string, cursor: string): string {
  const [path, query = ''] = url.split('?', 2) as [string, string?]
  const rest = query.split('&').filter((part) => part !== '' && !part.startsWith('cursor='))
  return `${path}?${[...rest, `cursor=${cursor}`].join('&')}`
}
