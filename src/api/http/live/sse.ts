// Server-sent events: an open response, messages, a heartbeat, and detection of disconnected readers.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'
import { endDatabaseWait } from '../requests/connections.ts'
import { leaveInFlight } from '../requests/transport.ts'
import type { Shares } from '../shares/shares.ts'

export type StreamMessage = { id?: string; event?: string; data: unknown }

export type EventStream = {
  /** False if the reader is gone or too slow. It reconnects with Last-Event-ID and misses nothing. */
  send(message: StreamMessage): boolean
  /** The same for an encoded message that many readers share. */
  write(frame: string): boolean
  /** Resolves when the reader has caught up or is gone. */
  drained(): Promise<void>
  readonly signal: AbortSignal
  end(): void
}

const heartbeatMs = 15_000
// A reader with more unread data is disconnected, to limit memory.
const maxUnreadBytes = 1 << 20
// For all readers together: above it, those with the most unread data are disconnected.
const maxUnreadBytesOfAll = 64 << 20
// An ended stream that isn't read to its end is cut off.
const endingMs = 10_000

export function frameOf({ id, event, data }: StreamMessage): string {
  return `${id ? `id: ${id}\n` : ''}${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`
}

/** Whether the client wants a stream; refuses one that was refused a moment ago. */
export function wantsStream(request: FastifyRequest): boolean {
  // HEAD gets the headers of the plain response, because a stream would never end.
  const wants = request.method !== 'HEAD' && /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(request.headers.accept ?? '')
  if (wants) request.server.shares.expect(request, 'streams')
  return wants
}

/** The streams of one server. */
export type Streams = {
  /** Refuses what exceeds the limit of the account or the server. From then on the stream owns the reply. */
  open(request: FastifyRequest, reply: FastifyReply): Promise<EventStream>
  /** Called at shutdown, which must not wait for readers. */
  endAll(): void
}

declare module 'fastify' {
  interface FastifyInstance {
    streams: Streams
  }
}

type OpenStream = EventStream & {
  /** Sends a heartbeat, and disconnects a reader that has read nothing since the last one. */
  beat(): void
  /** Unread bytes as last measured. */
  unread: number
  measure(): void
  drop(): void
}

export function createStreams(shares: Shares, maxUnreadOfAll = maxUnreadBytesOfAll): Streams {
  const openStreams = new Set<OpenStream>()
  let unreadOfAll = 0
  // One heartbeat timer for all streams; it runs while there are any.
  let heartbeat: NodeJS.Timeout | undefined
  let closing = false

  function beat(): void {
    for (const stream of openStreams) stream.beat()
  }

  function limitUnread(): void {
    for (const stream of openStreams) stream.measure()
    while (unreadOfAll > maxUnreadOfAll) {
      let worst: OpenStream | undefined
      for (const stream of openStreams) if (!worst || stream.unread > worst.unread) worst = stream
      worst!.drop()
    }
  }

  function begin(reply: FastifyReply): void {
    reply.hijack()
    endDatabaseWait(reply.request)
    const headers = Object.fromEntries(Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined))
    reply.raw.writeHead(200, {
      ...(headers as Record<string, string>),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    reply.raw.write('retry: 1000\n\n')
  }

  async function open(request: FastifyRequest, reply: FastifyReply): Promise<EventStream> {
    if (closing) throw new Fault('overloaded', 'The server is shutting down.', { retryAfterSeconds: 1 })
    const { raw } = reply
    const { socket } = request.raw
    const gone = new AbortController()
    let close = () => {}
    await shares.move(request, 'streams', () => close())
    leaveInFlight(request)
    begin(reply)

    let flushed = -1
    const stream: OpenStream = {
      signal: gone.signal,
      unread: 0,
      send: (message) => stream.write(frameOf(message)),
      write(frame) {
        if (gone.signal.aborted) return false
        raw.write(frame)
        stream.measure()
        if (stream.unread > maxUnreadBytes) stream.drop()
        else if (unreadOfAll > maxUnreadOfAll) limitUnread()
        return !gone.signal.aborted
      },
      measure() {
        const unread = raw.writableLength
        unreadOfAll += unread - stream.unread
        stream.unread = unread
      },
      beat() {
        // How much of the data written to the connection has left it.
        const now = socket.bytesWritten - socket.writableLength
        if (raw.writableLength > 0 && now === flushed) return stream.drop()
        flushed = now
        stream.write(': alive\n\n')
      },
      drained() {
        if (gone.signal.aborted || !raw.writableNeedDrain) return Promise.resolve()
        return new Promise((resolve) => {
          const done = () => {
            raw.off('drain', done)
            gone.signal.removeEventListener('abort', done)
            resolve()
          }
          raw.on('drain', done)
          gone.signal.addEventListener('abort', done)
        })
      },
      end() {
        if (gone.signal.aborted) return
        raw.end()
        const timer = setTimeout(() => socket.destroy(), endingMs).unref()
        raw.once('finish', () => clearTimeout(timer))
        raw.once('close', () => clearTimeout(timer))
        close()
      },
      drop() {
        // Destroys the connection, because the response may still be queued behind another one.
        socket.destroy()
        close()
      },
    }
    close = () => {
      openStreams.delete(stream)
      unreadOfAll -= stream.unread
      stream.unread = 0
      if (openStreams.size === 0) {
        clearInterval(heartbeat)
        heartbeat = undefined
      }
      gone.abort()
    }
    openStreams.add(stream)
    heartbeat ??= setInterval(beat, heartbeatMs)
    return stream
  }

  return {
    open,
    endAll() {
      closing = true
      for (const stream of openStreams) stream.end()
    },
  }
}
