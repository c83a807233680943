// Checks before authentication: HTTPS only, and load shedding.
import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.')
}

/** A token sent over HTTP has leaked already, so the request is refused and never redirected. */
export function requireHttps(request: FastifyRequest): void {
  if (request.protocol !== 'https' && !isLoopback(request.ip)) throw new Fault('https_required')
}

// One long delay of the event loop is normal; a second and a half of them is overload.
const defaultMaxLoopDelayMs = 500
const windowMs = 500
const windowsInARow = 3

type Places = { taken: number }

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request counts as under way; null before its body has come and after its work is done. */
    place: Places | null
  }
}

/**
 * Sheds requests while too many are under way or the event loop lags; health checks are still answered. A request is
 * under way while the server works on it. Neither a body that comes slowly nor an answer that is read slowly counts.
 */
export function shedLoad(app: FastifyInstance, maxInFlight: number, maxLoopDelayMs = defaultMaxLoopDelayMs): void {
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

  const places: Places = { taken: 0 }
  const isFull = () => slowWindows >= windowsInARow || places.taken >= maxInFlight
  const overloaded = () => new Fault('overloaded', undefined, { retryAfterSeconds: 1 })
  // Looked at twice, because a body that would be refused afterwards is better not read.
  app.addHook('onRequest', (_request, _reply, done) => (isFull() ? done(overloaded()) : done()))
  app.addHook('preValidation', (request, _reply, done) => {
    if (isFull()) return done(overloaded())
    if (isGone(request)) return done(closedByClient())
    places.taken++
    request.place = places
    done()
  })
  // Also reached when the client is gone, so that work for nobody counts until it ends.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    leavePlace(request)
    done()
  })
}

/** Whether the connection of a request is closed, or its body was given up: then there is no connection to ask. */
export function isGone(request: FastifyRequest): boolean {
  const socket: Socket | null = request.raw.socket
  return socket === null || socket.destroyed
}

/** Ends a request whose client is gone; nobody reads it. */
export function closedByClient(): Fault {
  return new Fault('invalid_request', 'The connection was closed before the response.')
}

/** The request no longer counts as under way, though it may stay open: a wait or a stream costs only memory. */
export function leavePlace(request: FastifyRequest): void {
  const { place } = request
  if (place === null) return
  request.place = null
  place.taken--
}
