// /events: everything that happened, in pages or as it happens.
import { follow } from '../http/follow.ts'
import { readPage, sendPage } from '../http/page.ts'
import { wantsStream } from '../http/sse.ts'
import { EventList, EventQuery } from '../schemas/events.ts'
import { eventsAfter, listEvents, positionOf } from '../services/events.ts'
import type { RoutePlugin } from './route.ts'

const streamBatch = 200
// How soon rows are looked at again that wait for an older transaction to end.
const unsettledDelayMs = 20

export const eventRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps

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
      let position = await positionOf(db, actor, typeof lastEventId === 'string' ? lastEventId : null)
      return follow(deps, request, reply, {
        wakesOnEvent: ({ accountId }) => accountId === actor.accountId,
        async step(stream) {
          const read = await eventsAfter(db, actor, query, position, streamBatch)
          position = read.position
          for (const event of read.events) {
            if (!stream.send({ id: event.id, event: event.type, data: event })) return 'end'
          }
          if (!read.more) return 'wait'
          return { againMs: read.events.length > 0 ? 0 : unsettledDelayMs }
        },
      })
    },
  )
}
