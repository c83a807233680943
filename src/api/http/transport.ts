// Checks before authentication: HTTPS only, known API versions, and load shedding.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'

export const apiVersion = '2026-11-14'
const knownVersions = new Set([apiVersion])

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.')
}

/** A token sent over HTTP has leaked already, so the request is refused and never redirected. */
export function requireHttps(request: FastifyRequest): void {
  if (request.protocol !== 'https' && !isLoopback(request.ip)) throw new Fault('https_required')
}

export function negotiateVersion(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('api-version', apiVersion)
  const wanted = request.headers['api-version']
  if (wanted === undefined || knownVersions.has(String(wanted))) return
  throw new Fault('unknown_api_version', `There is no version ${String(wanted).slice(0, 40)}; known is ${apiVersion}.`)
}

// One long delay of the event loop is normal; a second and a half of them is overload.
const maxLoopDelayMs = 500
const windowMs = 500
const windowsInARow = 3

/** Sheds requests while too many are in flight or the event loop lags; health checks are still answered. */
export function shedLoad(app: FastifyInstance, maxInFlight: number): void {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  let slowWindows = 0
  const timer = setInterval(() => {
    slowWindows = delay.mean / 1e6 > maxLoopDelayMs ? slowWindows + 1 : 0
    delay.reset()
  }, windowMs)
  timer.unref()
  app.addHook('onClose', async () => {
    clearInterval(timer)
    delay.disable()
  })

  let inFlight = 0
  app.addHook('onRequest', async (request) => {
    if (slowWindows >= windowsInARow || inFlight >= maxInFlight)
      throw new Fault('overloaded', undefined, { retryAfterSeconds: 1 })
    inFlight++
    places.set(request, () => inFlight--)
  })
  app.addHook('onResponse', async (request) => leavePlace(request))
  app.addHook('onRequestAbort', async (request) => leavePlace(request))
}

const places = new WeakMap<FastifyRequest, () => void>()

/** The request no longer counts as in flight, though it may stay open: a waiting stream costs only memory. */
export function leavePlace(request: FastifyRequest): void {
  const leave = places.get(request)
  places.delete(request)
  leave?.()
}
