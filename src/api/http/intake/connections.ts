// Which group a request's connections to the database count for, so that one locked table holds up its own routes only;
// and how long the request hears nothing from the database.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type DatabaseWait, inGroups, newDatabaseWait } from '../../../platform/database/pool.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Default: by the noun of the route. */
    connectionGroups?: readonly string[]
  }
  interface FastifyRequest {
    /** Null where a request is refused before all hooks. */
    wait: DatabaseWait | null
  }
}

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A group per noun, as `/api/tickets` and all below it; in it one for its changes, so that many who wait for one row
 * leave connections to its readers; and one for all changes, which share the event log.
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
  // Again, because what comes after the body runs on behalf of the connection.
  app.addHook('preValidation', (request, _reply, done) => {
    inGroups(request.routeOptions.config.connectionGroups ?? [], done, request.wait)
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    endSilence(request)
    done()
  })
}

/** For a response that has begun: a stream outlasts an outage, and asks again and again. */
export function endSilence({ wait }: FastifyRequest): void {
  if (wait) wait.isOver = true
}
