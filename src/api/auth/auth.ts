// /auth: signing in and out, and the console's token. Outside /api; only these routes read cookies.
import type { FastifyPluginAsync } from 'fastify'
import type { Deps } from '../http/deps.ts'
import { refuseUnexpectedBody, refuseUnstorableAddress } from '../http/requests/json-bodies.ts'
import { requireHttps, shedLoad } from '../http/requests/transport.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'
import { createSignInContext } from './context.ts'
import { deviceRoutes } from './device.ts'
import { mailSettingRoutes } from './mails.ts'
import { meRoutes } from './me.ts'
import type { AuthPlugin } from './plugin.ts'
import { refuseInsecureOrigin, requireSameOrigin } from './same-origin.ts'
import { sessionRoutes } from './sessions.ts'
import { setupRoutes } from './setup.ts'
import { signInRoutes } from './sign-in.ts'

// Callers have no token yet, so one address can't use up the limit.
const maxInFlight = 200
const maxOpenPerAddress = 50
// Enough for an email address and two passwords. Routes that need more set their own limit.
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
  const context = createSignInContext(deps)
  for (const plugin of plugins) await app.register(plugin, { deps, context })
}
