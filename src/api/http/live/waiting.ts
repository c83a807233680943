// `?wait=`: delays a response until a resource settles, woken by database notifications instead of polling.
import type { FastifyRequest } from 'fastify'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { leavePlace } from '../intake/transport.ts'
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
  /** Reads until `settled`, the time is over or the client is gone, and returns what was read last. */
  until<T>(request: FastifyRequest, wait: Wait<T>): Promise<T>
  /** Called when the server closes: every wait is answered with what there is. */
  endAll(): void
}

declare module 'fastify' {
  interface FastifyInstance {
    waits: Waits
  }
}

// Woken waits have no place among the requests under way. They read a few at a time instead, so that thousands that
// end together neither shed others nor hold up the database.
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
        // Listening starts before reading, so that a change between the two is not missed.
        const next = left > 0 && !closing ? notifications.nextEvent(request.actor.accountId, subject, left) : null
        wake = next?.cancel ?? wake
        try {
          value = waiting ? await inTurn(() => (gone ? value : read())) : await read()
          if (!next || gone || closing || settled(value)) return await answer(value)
          if (!waiting) {
            await shares.move(request, 'waits', leave)
            leavePlace(request)
            waiting = true
            ends.add(end)
            unwatch = request.server.watchToken(request.actor, refuse)
          }
          // Without notifications there is nothing to wait for.
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

/** Runs work in the order of the calls, at most so many at once. */
export function createTurns(atOnce: number) {
  let running = 0
  const queue: (() => void)[] = []
  return async function inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    if (running >= atOnce) await new Promise<void>((resolve) => queue.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      // The next one takes over the turn.
      const next = queue.shift()
      if (next) next()
      else running--
    }
  }
}
