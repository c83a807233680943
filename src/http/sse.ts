// Server-sent events: one open response, lines pushed as they come, a heartbeat, and an end that is noticed.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../errors.ts'
import { leavePlace } from './transport.ts'

export type StreamMessage = { id?: string; event?: string; data: unknown }

export type EventStream = {
  /** False once the reader is gone or too slow: it comes back with Last-Event-ID and misses nothing. */
  send(message: StreamMessage): boolean
  /** The same for text that is on the wire's form already, made once for many readers. */
  write(frame: string): boolean
  /** Resolves when the reader has taken what was sent, or is gone. */
  drained(): Promise<void>
  readonly signal: AbortSignal
  end(): void
}

const heartbeatMs = 15_000
// What a reader may leave unread before it is cut off; memory is ours, patience is not.
const maxUnreadBytes = 1 << 20
// 11 KB each, measured; a hundred MB is what one server has for them.
const maxStreams = 10_000

/** Streams that are open, so that a closing server can end them instead of waiting for readers. */
const openStreams = new Set<EventStream>()
// One clock for all of them; it runs while there is one.
let heartbeat: NodeJS.Timeout | undefined

function beat(): void {
  for (const stream of openStreams) stream.write(': alive\n\n')
}

export function frameOf({ id, event, data }: StreamMessage): string {
  return `${id ? `id: ${id}\n` : ''}${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`
}

export function wantsStream(request: FastifyRequest): boolean {
  // HEAD asks for the headers of what would come; a stream has no end to wait for.
  return request.method !== 'HEAD' && /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(request.headers.accept ?? '')
}

export function endStreams(): void {
  for (const stream of openStreams) stream.end()
}

export function openStream(reply: FastifyReply): EventStream {
  if (openStreams.size >= maxStreams) throw new Fault('overloaded', undefined, { retryAfterSeconds: 10 })
  const gone = new AbortController()
  reply.hijack()
  leavePlace(reply.request)
  const headers = Object.fromEntries(Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined))
  reply.raw.writeHead(200, {
    ...(headers as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  reply.raw.write('retry: 1000\n\n')
  const stream: EventStream = {
    signal: gone.signal,
    send: (message) => stream.write(frameOf(message)),
    write(frame) {
      if (gone.signal.aborted) return false
      reply.raw.write(frame)
      if (reply.raw.writableLength > maxUnreadBytes) reply.raw.destroy()
      return !reply.raw.destroyed
    },
    drained() {
      if (gone.signal.aborted || !reply.raw.writableNeedDrain) return Promise.resolve()
      return new Promise((resolve) => {
        const done = () => {
          reply.raw.off('drain', done)
          gone.signal.removeEventListener('abort', done)
          resolve()
        }
        reply.raw.on('drain', done)
        gone.signal.addEventListener('abort', done)
      })
    },
    end() {
      if (!gone.signal.aborted) reply.raw.end()
      close()
    },
  }
  function close(): void {
    openStreams.delete(stream)
    if (openStreams.size === 0) {
      clearInterval(heartbeat)
      heartbeat = undefined
    }
    gone.abort()
  }
  reply.raw.on('close', close)
  openStreams.add(stream)
  heartbeat ??= setInterval(beat, heartbeatMs)
  return stream
}
