// Which group a request's connections to the database count for, so that one locked table holds up its own routes only.
import type { FastifyInstance } from 'fastify'
import { inGroups } from '../../platform/pool.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    connectionGroups?: readonly string[]
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
    route.config = { ...route.config, connectionGroups: names }
  })
  app.addHook('preValidation', (request, _reply, done) => {
    inGroups(request.routeOptions.config.connectionGroups ?? [], done)
  })
}
