// Lists over HTTP: `limit`, `cursor` and `order` in, `nextCursor` and a Link header out.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { decodeCursor, encodeCursor, type Order, type PageOf, type PageRequest } from '../../platform/page.ts'

type Query = { limit?: number; cursor?: string; order?: Order }

/** `keyCount` is the number of columns in the list's sort key; lists by name are ascending, others newest first. */
export function readPage(query: Query, list: string, keyCount = 1, fallback: Order = 'desc'): PageRequest {
  const order = query.order ?? fallback
  const after = query.cursor === undefined ? null : decodeCursor(query.cursor, list, order, keyCount)
  return { limit: query.limit ?? 20, order, after }
}

/** `found` has one key, the name of the list in the response and in cursors. */
export function sendPage<K extends string, T>(
  request: FastifyRequest,
  reply: FastifyReply,
  page: PageRequest,
  found: Record<K, PageOf<T>>,
) {
  const [[list, result]] = Object.entries(found) as [[K, PageOf<T>]]
  const nextCursor = result.next ? encodeCursor(list, page.order, result.next) : null
  if (nextCursor) {
    reply.header('link', `<${withCursor(request.url, nextCursor)}>; rel="next"`)
  }
  return { [list]: result.items, nextCursor } as Record<K, T[]> & { nextCursor: string | null }
}

/** The address of the next page: this one's, with another cursor. */
function withCursor(url: string, cursor: string): string {
  const [path, query = ''] = url.split('?', 2) as [string, string?]
  const kept = query.split('&').filter((part) => part !== '' && !part.startsWith('cursor='))
  return `${path}?${[...kept, `cursor=${cursor}`].join('&')}`
}
