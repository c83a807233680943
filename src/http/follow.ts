// Live streams: a step that sends what is new, run again at every wake-up, for as long as reader and token last.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import type { EventNotice } from '../notifications.ts'
import { type EventStream, openStream } from './sse.ts'
import { tokenWatchOf } from './token-watch.ts'

export type Followed = {
  wakesOnEvent(notice: EventNotice): boolean
  wakesOnLog?(deploymentId: string): boolean
  /** Sends what is new; then the stream ends, waits to be woken, or goes on at once. */
  step(stream: EventStream): Promise<'end' | 'wait' | 'again'>
}

/** Opens a stream that ends with its token, and runs `work` until that or the reader ends it. */
export async function streaming(
  { db, notifications }: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (stream: EventStream) => Promise<void>,
): Promise<void> {
  const stream = openStream(reply)
  const unwatch = tokenWatchOf(db, notifications)(request.actor, () => stream.end())
  try {
    await work(stream)
  } catch (error) {
    // The reader comes back with Last-Event-ID, and misses nothing.
    request.log.warn({ err: error }, 'a live stream ended early')
  } finally {
    unwatch()
    stream.end()
  }
}

export async function follow(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  followed: Followed,
): Promise<void> {
  const { notifications } = deps
  await streaming(deps, request, reply, async (stream) => {
    let woken = Promise.withResolvers<void>()
    const wake = () => woken.resolve()
    const off = [
      notifications.on('event', (notice) => followed.wakesOnEvent(notice) && wake()),
      notifications.on('log', (deploymentId) => followed.wakesOnLog?.(deploymentId) && wake()),
      notifications.on('reconnected', wake),
    ]
    stream.signal.addEventListener('abort', wake)
    try {
      while (!stream.signal.aborted) {
        // Made before anything is read: a change during the reading wakes the next round.
        woken = Promise.withResolvers<void>()
        const next = await followed.step(stream)
        if (next === 'end') break
        if (next === 'wait') await woken.promise
        else await stream.drained()
      }
    } finally {
      for (const stop of off) stop()
    }
  })
}
