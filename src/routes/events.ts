// /events: everything that happened, in pages or as it happens.
import { createEventFeed } from '../http/event-feed.ts'
import { streaming } from '../http/follow.ts'
import { readPage, sendPage } from '../http/page.ts'
import { wantsStream } from '../http/sse.ts'
import { EventList, EventQuery } from '../schemas/events.ts'
import { listEvents, positionOf } from '../services/events.ts'
import type { RoutePlugin } from './route.ts'

export const eventRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, notifications } = deps
  const feed = createEventFeed(db, notifications)

  app.get(
    '/events',
    {
      config: { scope: 'events:read' },
      // `data` is one of many resources; trying each schema would cost more than it gives.
      serializerCompiler: () => (payload) => JSON.stringify(payload),
      schema: {
        operationId: 'listEvents',
        tags: ['Events'],
        summary: 'List or follow events',
        description:
          'Everything that happened in the account, newest first. With `Accept: text/event-stream` events come as they ' +
          'happen, filtered alike; `Last-Event-ID` resumes behind an event without a gap or a repeat.',
        querystring: EventQuery,
        response: { 200: EventList },
      },
    },
    async (request, reply) => {
      const { actor, query } = request
      if (!wantsStream(request)) {
        const page = readPage(query, 'events')
        return sendPage(request, reply, 'events', page, await listEvents(db, actor, query, page))
      }

      const lastEventId = request.headers['last-event-id']
      // Before the answer begins: whatever happens once the reader knows that it reads is sent to it.
      const from = await positionOf(db, actor, typeof lastEventId === 'string' ? lastEventId : null)
      return streaming(deps, request, reply, (stream) => feed.follow(actor, query, from, stream))
    },
  )
}
