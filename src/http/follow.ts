// Live streams: a step that sends what is new, run again at every wake-up, for as long as reader and token last.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import type { EventNotice } from '../notifications.ts'
import { isTokenLive } from '../services/tokens.ts'
import { type EventStream, openStream } from './sse.ts'

export type Followed = {
  wakesOnEvent(notice: EventNotice): boolean
  wakesOnLog?(deploymentId: string): boolean
  /** Sends what is new; then the stream ends, waits to be woken, or looks again after some milliseconds. */
  step(stream: EventStream): Promise<'end' | 'wait' | { againMs: number }>
}

// An expired token gives no notice, so it is looked for now and then.
const tokenCheckMs = 15_000

export async function follow(
  { db, notifications }: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  followed: Followed,
): Promise<void> {
  const { actor } = request
  const stream = openStream(reply)
  let woken = Promise.withResolvers<void>()
  let mustCheckToken = false
  const wake = () => woken.resolve()
  const checkToken = () => {
    mustCheckToken = true
    wake()
  }
  const timer = setInterval(checkToken, tokenCheckMs)
  const off = [
    notifications.on('event', (notice) => {
      const mayEnd = notice.accountId === actor.accountId && /^(token|account)\./.test(notice.type)
      if (mayEnd) checkToken()
      else if (followed.wakesOnEvent(notice)) wake()
    }),
    notifications.on('log', (deploymentId) => followed.wakesOnLog?.(deploymentId) && wake()),
    notifications.on('reconnected', wake),
  ]
  stream.signal.addEventListener('abort', wake)
  try {
    while (!stream.signal.aborted) {
      // Made before anything is read: a change during the reading wakes the next round.
      woken = Promise.withResolvers<void>()
      if (mustCheckToken && !(await isTokenLive(db, actor))) break
      mustCheckToken = false
      const next = await followed.step(stream)
      if (next === 'end') break
      await (next === 'wait' ? woken.promise : sleep(next.againMs))
    }
  } catch (error) {
    // The reader comes back with Last-Event-ID, and misses nothing.
    request.log.warn({ err: error }, 'a live stream ended early')
  } finally {
    clearInterval(timer)
    for (const stop of off) stop()
    stream.end()
  }
}
