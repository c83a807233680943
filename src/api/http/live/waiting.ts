// `?wait=`: delays a response until a resource settles, woken by database notifications instead of polling.
import type { FastifyRequest } from 'fastify'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { leaveInFlight } from '../requests/transport.ts'
import type { Shares } from '../shares/shares.ts'

export type Wait<T> = {
  /** Whose events wake the reader. */
  subject: string
  waitSeconds: number | undefined
  read(): Promise<T>
  settled(value: T): boolean
}

/** The waits of one server. */
export type Waits = {
  /** Reads until `settled`, the timeout, or the client disconnects; returns the last value read. */
  until<T>(request: FastifyRequest, wait: Wait<T>): Promise<T>
  /** Called at shutdown: every wait responds with its last value. */
  endAll(): void
}

declare module 'fastify' {
  interface FastifyInstance {
    waits: Waits
  }
}

// Woken waits don't count as in flight. They read a few at a time instead, so that thousands that end together neither
// shed other requests nor overload the database.
const readsAtOnce = 16

/** `recheck` throws if the token of the request is no longer valid. */
export function createWaits(
  shares: Shares,
  notifications: Notifications,
  recheck: (request: FastifyRequest) => Promise<void>,
): Waits {
  const inTurn = createTurns(readsAtOnce)
  const ends = new Set<() => void>()
  let closing = false

  async function until<T>(request: FastifyRequest, wait: Wait<T>, waitSeconds: number): Promise<T> {
    shares.expect(request, 'waits')
    const { subject, read, settled } = wait
    const deadline = Date.now() + waitSeconds * 1000
    let waiting = false
    let gone = false
    let refused = false
    let unwatch = () => {}
    let wake = () => {}
    const end = () => wake()
    const leave = () => {
      gone = true
      wake()
    }
    const refuse = () => {
      refused = true
      wake()
    }
    const answer = async (value: T): Promise<T> => {
      // A token may have been revoked during the wait, perhaps by the very change that ended it.
      if (waiting && !gone) await recheck(request)
      return value
    }
    let value: T
    try {
      for (;;) {
        const left = deadline - Date.now()
        // Starts listening before reading, so that no change in between is missed.
        const next = left > 0 && !closing ? notifications.nextEvent(request.actor.accountId, subject, left) : null
        wake = next?.cancel ?? wake
        try {
          value = waiting ? await inTurn(() => (gone ? value : read())) : await read()
          if (!next || gone || closing || settled(value)) return await answer(value)
          if (!waiting) {
            await shares.move(request, 'waits', leave)
            leaveInFlight(request)
            waiting = true
            ends.add(end)
            unwatch = request.server.watchToken(request.actor, refuse)
          }
          // Without notifications, waiting is pointless.
          if (closing || !notifications.connected) return value
          await next.done
          if (gone || refused) return await answer(value)
          if (closing || !notifications.connected) return await answer(await inTurn(read))
        } finally {
          next?.cancel()
        }
      }
    } finally {
      unwatch()
      ends.delete(end)
    }
  }

  return {
    until: (request, wait) => (wait.waitSeconds ? until(request, wait, wait.waitSeconds) : wait.read()),
    endAll() {
      closing = true
      for (const end of ends) end()
    },
  }
}

/** Runs work in call order, at most `atOnce` at a time. */
export function createTurns(atOnce: number) {
  let running = 0
  const queue: (() => void)[] = []
  return async function inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    if (running >= atOnce) await new Promise<void>((resolve) => queue.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      // The next one inherits the slot.
      const next = queue.shift()
      if (next) next()
      else running--
    }
  }
}
