// Live streams: runs a step that sends new data whenever something changes, until the reader leaves or the token is
// invalid.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { EventNotice } from '../../../platform/database/notifications.ts'
import type { Deps } from '../deps.ts'
import type { EventStream } from './sse.ts'

// How often to poll while notifications are down.
const unheardMs = 1_000

export type Followed = {
  wakesOnEvent(notice: EventNotice): boolean
  wakesOnLog?(deploymentId: string): boolean
  /** Sends what is new; then the stream ends, waits to be woken, or continues at once. */
  step(stream: EventStream): Promise<'end' | 'wait' | 'again'>
}

/** Opens a stream and runs `work` until the token becomes invalid or the reader disconnects. */
export async function streaming(
  request: FastifyRequest,
  reply: FastifyReply,
  work: (stream: EventStream) => Promise<void>,
): Promise<void> {
  const stream = await reply.server.streams.open(request, reply)
  const unwatch = reply.server.watchToken(request.actor, () => stream.end())
  try {
    await work(stream)
  } catch (error) {
    // The reader reconnects with Last-Event-ID and misses nothing.
    request.log.warn({ requestId: request.id, err: error }, 'a live stream ended early')
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
  await streaming(request, reply, async (stream) => {
    let woken = Promise.withResolvers<void>()
    const wake = () => woken.resolve()
    const timer = setInterval(() => notifications.connected || wake(), unheardMs)
    const off = [
      () => clearInterval(timer),
      notifications.on('event', (notice) => followed.wakesOnEvent(notice) && wake()),
      notifications.on('log', (deploymentId) => followed.wakesOnLog?.(deploymentId) && wake()),
      notifications.on('reconnected', wake),
    ]
    stream.signal.addEventListener('abort', wake)
    try {
      while (!stream.signal.aborted) {
        // Created before the read, so that a change during the read wakes the next round.
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
