// Server-sent events: one open response, lines pushed as they come, a heartbeat, and an end that is noticed.
import type { FastifyReply, FastifyRequest } from 'fastify'

export type EventStream = {
  /** False once the reader is gone or too slow: it comes back with Last-Event-ID and misses nothing. */
  send(message: { id?: string; event?: string; data: unknown }): boolean
  readonly signal: AbortSignal
  end(): void
}

const heartbeatMs = 15_000
// What a reader may leave unread before it is cut off; memory is ours, patience is not.
const maxUnreadBytes = 1 << 20

/** Streams that are open, so that a closing server can end them instead of waiting for readers. */
const openStreams = new Set<EventStream>()

export function wantsStream(request: FastifyRequest): boolean {
  // HEAD asks for the headers of what would come; a stream has no end to wait for.
  return request.method !== 'HEAD' && /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(request.headers.accept ?? '')
}

export function endStreams(): void {
  for (const stream of openStreams) stream.end()
}

export function openStream(reply: FastifyReply): EventStream {
  const gone = new AbortController()
  reply.hijack()
  const headers = Object.fromEntries(Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined))
  reply.raw.writeHead(200, {
    ...(headers as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  reply.raw.write('retry: 1000\n\n')
  const heartbeat = setInterval(() => reply.raw.write(': alive\n\n'), heartbeatMs)
  const stream: EventStream = {
    signal: gone.signal,
    send({ id, event, data }) {
      if (gone.signal.aborted) return false
      const head = `${id ? `id: ${id}\n` : ''}${event ? `event: ${event}\n` : ''}`
      reply.raw.write(`${head}data: ${JSON.stringify(data)}\n\n`)
      if (reply.raw.writableLength > maxUnreadBytes) reply.raw.destroy()
      return !reply.raw.destroyed
    },
    end() {
      if (!gone.signal.aborted) reply.raw.end()
      close()
    },
  }
  function close(): void {
    clearInterval(heartbeat)
    openStreams.delete(stream)
    gone.abort()
  }
  reply.raw.on('close', close)
  openStreams.add(stream)
  return stream
}
