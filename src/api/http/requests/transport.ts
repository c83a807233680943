// Checks before authentication: HTTPS only, and load shedding.
import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.')
}

/** A token sent over HTTP has already leaked, so the request is refused, never redirected. */
export function requireHttps(request: FastifyRequest): void {
  if (request.protocol !== 'https' && !isLoopback(request.ip)) throw new Fault('https_required')
}

// One long delay of the event loop is normal; a second and a half of them is overload.
const defaultMaxLoopDelayMs = 500
const windowMs = 500
const windowsInARow = 3

type InFlight = { count: number }

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The count of requests in flight that includes this one; null before its body has arrived and after its work is
     * done.
     */
    inFlight: InFlight | null
  }
}

/**
 * Sheds requests while too many are in flight or the event loop lags; health checks still get a response. A request is
 * in flight while the server works on it. Slow uploads and slow readers don't count.
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

  const inFlight: InFlight = { count: 0 }
  const isFull = () => slowWindows >= windowsInARow || inFlight.count >= maxInFlight
  const overloaded = () => new Fault('overloaded', undefined, { retryAfterSeconds: 1 })
  // Checked before and after the body, because a body that will be refused is better not read.
  app.addHook('onRequest', (_request, _reply, done) => (isFull() ? done(overloaded()) : done()))
  app.addHook('preValidation', (request, _reply, done) => {
    if (isFull()) return done(overloaded())
    if (isGone(request)) return done(closedByClient())
    inFlight.count++
    request.inFlight = inFlight
    done()
  })
  // Also called if the client is gone, so that abandoned work counts until it ends.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    leaveInFlight(request)
    done()
  })
}

/** Whether the connection is closed or the body was abandoned, which leaves no socket to check. */
export function isGone(request: FastifyRequest): boolean {
  const socket: Socket | null = request.raw.socket
  return socket === null || socket.destroyed
}

/** Ends a request whose client is gone; nobody reads it. */
export function closedByClient(): Fault {
  return new Fault('invalid_request', 'The connection was closed before the response.')
}

/** The request no longer counts as in flight, though it may stay open: a wait or a stream costs only memory. */
export function leaveInFlight(request: FastifyRequest): void {
  const { inFlight } = request
  if (inFlight === null) return
  request.inFlight = null
  inFlight.count--
}
