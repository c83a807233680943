// /events: everything that happened, in pages or as it happens.
import { setTimeout as sleep } from 'node:timers/promises'
import { readPage, sendPage } from '../http/page.ts'
import { openStream, wantsStream } from '../http/sse.ts'
import { EventList, EventQuery } from '../schemas/events.ts'
import { eventsAfter, listEvents, positionOf } from '../services/events.ts'
import { isTokenLive } from '../services/tokens.ts'
import type { RoutePlugin } from './route.ts'

const streamBatch = 200
// How soon rows are looked at again that wait for an older transaction to end.
const unsettledDelayMs = 20

export const eventRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, notifications } = deps

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
      const stream = openStream(reply)
      let woken = Promise.withResolvers<void>()
      const wake = () => woken.resolve()
      let mustCheckToken = false
      const off = [
        notifications.on('event', ({ type, accountId }) => {
          if (accountId !== actor.accountId) return
          if (type.startsWith('token.') || type.startsWith('account.')) mustCheckToken = true
          wake()
        }),
        notifications.on('reconnected', wake),
      ]
      stream.signal.addEventListener('abort', wake)
      try {
        while (!stream.signal.aborted) {
          woken = Promise.withResolvers<void>()
          if (mustCheckToken) {
            mustCheckToken = false
            if (!(await isTokenLive(db, actor))) break
          }
          const read = await eventsAfter(db, actor, query, position, streamBatch)
          position = read.position
          for (const event of read.events) {
            if (!stream.send({ id: event.id, event: event.type, data: event })) break
          }
          if (!read.more) await woken.promise
          else if (read.events.length === 0) await sleep(unsettledDelayMs)
        }
      } catch (error) {
        request.log.warn({ err: error }, 'event stream ended early')
      } finally {
        for (const stop of off) stop()
        stream.end()
      }
    },
  )
}
