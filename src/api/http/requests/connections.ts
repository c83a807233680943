// Groups a request's database connections, so that one locked table blocks only its own routes, and limits how long a
// request waits for a silent database.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type DatabaseWait, inGroups, newDatabaseWait } from '../../../platform/database/pool.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Default: the noun of the route. */
    connectionGroups?: readonly string[]
  }
  interface FastifyRequest {
    /** Null if a request is refused before any hook ran. */
    wait: DatabaseWait | null
  }
}

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * One group per noun, such as `/api/tickets` and everything below it. Within it one for changes, so that many requests
 * waiting for one row leave connections for readers. And one for all changes, which share the event log.
 */
export function groupConnections(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const [, noun] = /^\/(?:api\/)?([^/]+)/.exec(route.url) ?? []
    const isReading = [route.method].flat().every((method) => readingMethods.has(method))
    const names = noun ? [noun, ...(isReading ? [] : [`${noun}/changes`, 'changes'])] : []
    route.config = { connectionGroups: names, ...route.config }
  })
  app.decorateRequest('wait', null)
  app.addHook('onRequest', (request, _reply, done) => {
    request.wait = newDatabaseWait()
    inGroups([], done, request.wait)
  })
  // Again, because code that runs after the body arrived belongs to the connection's async context.
  app.addHook('preValidation', (request, _reply, done) => {
    inGroups(request.routeOptions.config.connectionGroups ?? [], done, request.wait)
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    endDatabaseWait(request)
    done()
  })
}

/** For a response that has begun: a stream outlasts an outage and keeps retrying. */
export function endDatabaseWait({ wait }: FastifyRequest): void {
  if (wait) wait.isOver = true
}
