// What protects the hooks, which are called without a token.
import type { FastifyInstance } from 'fastify'
import { requireHttps, shedLoad } from '../http/requests/transport.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'

// A request may hold a whole body in memory before its sender is verified, so one address can't use up the limit.
const maxInFlight = 100
const maxOpenPerAddress = 25

export function protectHook(app: FastifyInstance, maxInFlightOfServer: number): void {
  shedLoad(app, Math.min(maxInFlightOfServer, maxInFlight))
  boundOpenPerAddress(app, maxOpenPerAddress, maxInFlight)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireHttps(request)
  })
}
