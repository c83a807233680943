// Server-sent events: an open response, messages, a heartbeat, and detection of disconnected readers.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { leavePlace } from './transport.ts'

export type StreamMessage = { id?: string; event?: string; data: unknown }

export type EventStream = {
  /** False once the reader is gone or too slow: it reconnects with Last-Event-ID and misses nothing. */
  send(message: StreamMessage): boolean
  /** The same for an already encoded message, which many readers share. */
  write(frame: string): boolean
  /** Resolves when the reader has read what was sent, or is gone. */
  drained(): Promise<void>
  readonly signal: AbortSignal
  end(): void
}

const heartbeatMs = 15_000
// A reader with more unread data than this is disconnected, to bound memory.
const maxUnreadBytes = 1 << 20
// 11 KB each, measured, so about 100 MB per server.
const maxStreams = 10_000

export function frameOf({ id, event, data }: StreamMessage): string {
  return `${id ? `id: ${id}\n` : ''}${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`
}

export function wantsStream(request: FastifyRequest): boolean {
  // HEAD gets the headers of the plain response; a stream would not end.
  return request.method !== 'HEAD' && /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(request.headers.accept ?? '')
}

/** The streams of one server. */
export type Streams = {
  open(reply: FastifyReply): EventStream
  /** Called when the server closes, so that it does not wait for readers. */
  endAll(): void
}

declare module 'fastify' {
  interface FastifyInstance {
    streams: Streams
  }
}

export function createStreams(): Streams {
  const openStreams = new Set<EventStream>()
  // One heartbeat timer for all streams; it runs while there are any.
  let heartbeat: NodeJS.Timeout | undefined

  function beat(): void {
    for (const stream of openStreams) stream.write(': alive\n\n')
  }

  function open(reply: FastifyReply): EventStream {
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

  return {
    open,
    endAll() {
      for (const stream of openStreams) stream.end()
    },
  }
}
