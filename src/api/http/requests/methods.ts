// 405 with Allow for methods that an existing path doesn't support.
import type { FastifyInstance } from 'fastify'
import { Fault } from '../../../platform/errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    anyMethod?: boolean
  }
}

const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** Call the result once all routes are registered. */
export function collectMethods(api: FastifyInstance): () => void {
  const methods = new Map<string, Set<string>>()
  api.addHook('onRoute', (route) => {
    if (route.config?.anyMethod) return
    const known = methods.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) known.add(method)
    methods.set(route.url, known)
  })
  return () => {
    for (const [url, known] of [...methods]) {
      const allow = [...known].sort()
      api.route({
        method: allMethods.filter((method) => !known.has(method)),
        url: url.replace(/^\/api/, ''),
        config: { anyMethod: true },
        schema: { hide: true },
        // Refused before the body is read, but after the guard.
        preParsing: async (request) => {
          throw new Fault('method_not_allowed', `${request.method} is not supported here. Use ${allow.join(', ')}.`, {
            allow,
          })
        },
        handler: async () => {},
      })
    }
  }
}
