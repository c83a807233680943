// /events: everything that happened, in pages or live.

import { Named } from '../../schemas/common.ts'
import { EventList, EventMessage, EventQuery } from '../../schemas/events.ts'
import { cursorKeys, filterOf, listEvents, positionOf } from '../../services/events/index.ts'
import { createEventFeed } from '../http/live/event-feed.ts'
import { streaming } from '../http/live/live-stream.ts'
import { wantsStream } from '../http/live/sse.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin } from './route.ts'

export const eventRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, notifications } = deps
  const feed = createEventFeed(db, notifications)

  app.get(
    '/events',
    {
      config: { scope: 'events:read', faults: ['quota_exceeded'], stream: EventMessage },
      // `data` is one of many resources; trying each schema would be slow.
      serializerCompiler: () => (payload) => JSON.stringify(payload),
      schema: {
        operationId: 'listEvents',
        tags: ['Events'],
        summary: 'List or follow events',
        description:
          'Everything that happened in the account, newest first. To poll, read with `order=asc` and keep `latestCursor`: ' +
          'asked again with it, the list shows each event that came since once. With `Accept: text/event-stream` events ' +
          'come as they happen, filtered by `type` and `subject` alike; `Last-Event-ID` resumes behind an event without a ' +
          'gap or a repeat.',
        querystring: EventQuery,
        response: { 200: Named(EventList) },
      },
    },
    async (request, reply) => {
      const { actor, query } = request
      const filter = filterOf(query)
      if (!wantsStream(request)) {
        const page = readPage(query, 'events', cursorKeys[query.order ?? 'desc'])
        return sendPage(request, reply, page, { events: await listEvents(db, actor, filter, page) })
      }

      const lastEventId = request.headers['last-event-id']
      // Read before the response starts, so that the stream misses no event.
      const from = await positionOf(db, actor, typeof lastEventId === 'string' ? lastEventId : null)
      return streaming(request, reply, (stream) => feed.follow(actor, filter, from, stream))
    },
  )
}
