// /auth: signing in and out, and the token of the console. Outside /api, and the only part that reads a cookie.
import type { FastifyPluginAsync } from 'fastify'
import type { Deps } from '../http/deps.ts'
import { refuseUnexpectedBody, refuseUnstorableAddress } from '../http/intake/json-bodies.ts'
import { requireHttps, shedLoad } from '../http/intake/transport.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'
import { deviceRoutes } from './device.ts'
import { mailSettingRoutes } from './mails.ts'
import { meRoutes } from './me.ts'
import type { AuthPlugin } from './plugin.ts'
import { refuseInsecureOrigin, requireSameOrigin } from './same-origin.ts'
import { sessionRoutes } from './sessions.ts'
import { setupRoutes } from './setup.ts'
import { signInRoutes } from './sign-in.ts'
import { createWays } from './ways.ts'

// Nobody here has shown a token: no address may have all places.
const maxInFlight = 200
const maxOpenPerAddress = 50
// An address and two passwords. Routes that take more say so.
const bodyLimitBytes = 4 << 10

const plugins: AuthPlugin[] = [setupRoutes, sessionRoutes, meRoutes, mailSettingRoutes, deviceRoutes, signInRoutes]

export const authRoutes: FastifyPluginAsync<{ deps: Deps }> = async (app, { deps }) => {
  const { config } = deps
  shedLoad(app, Math.min(config.maxInFlight, maxInFlight))
  boundOpenPerAddress(app, maxOpenPerAddress, maxInFlight)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireHttps(request)
  })
  refuseInsecureOrigin(app, config.baseUrl)
  requireSameOrigin(app, config.baseUrl)
  app.addHook('preValidation', async (request) => {
    refuseUnexpectedBody(request.routeOptions.schema, request.body)
    refuseUnstorableAddress(request)
  })
  // The OpenAPI document covers the public API only.
  app.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true }
    route.bodyLimit ??= bodyLimitBytes
  })
  const ways = createWays(deps)
  for (const plugin of plugins) await app.register(plugin, { deps, ways })
}
