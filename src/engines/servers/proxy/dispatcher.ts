// Dispatches requests and WebSockets to instances, and retries those that haven't reached one.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { InstanceUnreachable, sendFailure, sendFailureToSocket } from '../instance/failures.ts'
import type { Upstream } from '../instance/instance.ts'
import type { ServerLimits } from '../instance/limits.ts'
import { forward } from './proxy.ts'
import { tunnel } from './tunnel.ts'

/** One instance, as requests see it. */
export type Backend = {
  /** Calls `act` once requests can be sent, possibly immediately. */
  use(act: (instance: Upstream) => void, fail: (error: Error) => void): void
  isRunning(instance: Upstream): boolean
  /** Called when a connection broke. */
  checkForCrash(instance: Upstream): void
  /** The number of requests in progress. */
  readonly load: number
}

/** Calls `act` once there is a backend. */
export type FindBackend = (deploymentId: string, act: (backend: Backend) => void, fail: (error: Error) => void) => void

export type DispatcherOptions = {
  route: FindBackend
  limits: Pick<ServerLimits, 'stallMs' | 'waitTimeoutMs'>
  log: Logger
}

/** `answered` receives the status of the response. */
export type UpgradeTarget = { deploymentId: string; answered?(status: number): void }

export type Dispatcher = {
  /** If the server isn't running, as with previews, starts it and makes the request wait. */
  proxy(request: IncomingMessage, response: ServerResponse, target: { deploymentId: string }): void
  /** Handles the `upgrade` event of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: UpgradeTarget): void
}

// A pause, in case an instance refuses immediately.
const retryDelayMs = 100

export function createDispatcher({ route, limits, log }: DispatcherOptions): Dispatcher {
  const { stallMs, waitTimeoutMs } = limits

  /** Returns a function that retries a request that reached no instance, unless it has waited too long. */
  function createRetry(attempt: () => void): (error: Error) => boolean {
    const untilMs = performance.now() + waitTimeoutMs
    let refused = false
    return (error) => {
      if (error instanceof InstanceUnreachable) {
        if (!error.retryable || performance.now() > untilMs) return false
        setTimeout(attempt, retryDelayMs)
        return true
      }
      // A crash of a local server that hasn't been reported yet is worth one retry.
      if (refused) return false
      refused = true
      attempt()
      return true
    }
  }

  function logFailure(deploymentId: string, { message: reason }: Error): void {
    log.warn({ deploymentId, reason }, 'a request found no server')
  }

  return {
    proxy(request, response, { deploymentId }) {
      const fail = (error: Error) => {
        logFailure(deploymentId, error)
        sendFailure(response, 503)
      }
      const attempt = () =>
        route(
          deploymentId,
          (backend) => {
            const { isRunning, checkForCrash } = backend
            backend.use(
              (instance) => forward(request, response, instance, { stallMs, isRunning, checkForCrash, retry }),
              fail,
            )
          },
          fail,
        )
      const retry = createRetry(attempt)
      attempt()
    },
    upgrade(request, socket, head, { deploymentId, answered }) {
      // A visitor who disconnects early must not cause an unhandled error.
      socket.on('error', () => socket.destroy())
      const fail = (error: Error) => {
        logFailure(deploymentId, error)
        answered?.(503)
        sendFailureToSocket(socket, 503)
      }
      const attempt = () =>
        route(
          deploymentId,
          (backend) =>
            backend.use(
              (instance) =>
                tunnel({ request, socket, head }, instance, { stallMs, retry, ...(answered && { answered }) }),
              fail,
            ),
          fail,
        )
      const retry = createRetry(attempt)
      attempt()
    },
  }
}
