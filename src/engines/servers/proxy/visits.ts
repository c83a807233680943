// Passes requests and WebSockets of visitors to an instance, and again to one while they have reached none.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { NotReached, sendFailure, sendFailureTo } from '../instance/failures.ts'
import type { Upstream } from '../instance/instance.ts'
import type { ServerLimits } from '../instance/limits.ts'
import { forward } from './proxy.ts'
import { tunnel } from './tunnel.ts'

/** The way to one instance. */
export type Lane = {
  /** Calls `act` as soon as requests can be sent; at once, if they can. */
  use(act: (instance: Upstream) => void, fail: (error: Error) => void): void
  isRunning(instance: Upstream): boolean
  /** A connection broke. */
  checkForCrash(instance: Upstream): void
  /** Requests that are under way. */
  readonly load: number
}

/** Calls `act` with a lane as soon as there is one. */
export type Route = (deploymentId: string, act: (lane: Lane) => void, fail: (error: Error) => void) => void

export type VisitsOptions = { route: Route; limits: Pick<ServerLimits, 'stallMs' | 'waitMs'>; log: Logger }

/** `answered` is called with the status of the answer. */
export type UpgradeTarget = { deploymentId: string; answered?(status: number): void }

export type Visits = {
  /** If the server does not run, as with previews, it is started and the request waits for it. */
  proxy(request: IncomingMessage, response: ServerResponse, target: { deploymentId: string }): void
  /** For the event `upgrade` of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: UpgradeTarget): void
}

// So that an instance that refuses at once is not asked without a pause.
const againMs = 100

export function createVisits({ route, limits, log }: VisitsOptions): Visits {
  const { stallMs, waitMs } = limits

  /** Returns what repeats a visit that has reached no instance: until it has waited too long, here only once. */
  function repetition(pass: () => void): (error: Error) => boolean {
    const untilMs = performance.now() + waitMs
    let refused = false
    return (error) => {
      if (error instanceof NotReached) {
        if (!error.again || performance.now() > untilMs) return false
        setTimeout(pass, againMs)
        return true
      }
      // The server crashed, and that is not known yet.
      if (refused) return false
      refused = true
      pass()
      return true
    }
  }

  function note(deploymentId: string, { message: reason }: Error): void {
    log.warn({ deploymentId, reason }, 'a request found no server')
  }

  return {
    proxy(request, response, { deploymentId }) {
      const fail = (error: Error) => {
        note(deploymentId, error)
        sendFailure(response, 503)
      }
      const pass = () =>
        route(
          deploymentId,
          (lane) => {
            const { isRunning, checkForCrash } = lane
            lane.use(
              (instance) => forward(request, response, instance, { stallMs, isRunning, checkForCrash, again }),
              fail,
            )
          },
          fail,
        )
      const again = repetition(pass)
      pass()
    },
    upgrade(request, socket, head, { deploymentId, answered }) {
      // A visitor who disconnects early must not cause an unhandled error.
      socket.on('error', () => socket.destroy())
      const fail = (error: Error) => {
        note(deploymentId, error)
        answered?.(503)
        sendFailureTo(socket, 503)
      }
      const pass = () =>
        route(
          deploymentId,
          (lane) =>
            lane.use(
              (instance) =>
                tunnel({ request, socket, head }, instance, { stallMs, again, ...(answered && { answered }) }),
              fail,
            ),
          fail,
        )
      const again = repetition(pass)
      pass()
    },
  }
}
