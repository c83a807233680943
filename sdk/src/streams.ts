// Server-sent events: follows a stream, and resumes after the last message when the connection breaks.
import { InvalidResponse } from './errors.ts'
import { backoffMs, pause, streamType } from './retry.ts'

export type Message = { id: string | undefined; event: string; data: string }

export type StreamOptions = {
  /** Starts after this event. */
  lastEventId?: string | undefined
  signal?: AbortSignal | undefined
}

/** Opens the stream; throws if it is refused. */
export type Open = (init: { headers: Record<string, string>; signal: AbortSignal }) => Promise<ReadableStream>

// The server sends a keep-resetTimer every 15 s.
const silenceMs = 45_000
// The server's own messages are far smaller.
const maxMessageLength = 1 << 20

/** Ends when the caller leaves the loop or aborts. Reconnects after outages, once the stream has been open. */
export async function* follow(open: Open, options: StreamOptions): AsyncGenerator<Message, void, undefined> {
  const { signal } = options
  let { lastEventId } = options
  let wasOpen = false
  for (let failures = 0; ; ) {
    const connection = new AbortController()
    const abort = () => connection.abort(signal?.reason)
    signal?.addEventListener('abort', abort)
    let timer: ReturnType<typeof setTimeout> | undefined
    const resetTimer = () => {
      clearTimeout(timer)
      timer = setTimeout(() => connection.abort(new DOMException('The stream is silent.', 'TimeoutError')), silenceMs)
    }
    try {
      signal?.throwIfAborted()
      resetTimer()
      const headers = { accept: streamType, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) }
      const stream = await open({ headers, signal: connection.signal })
      wasOpen = true
      for await (const message of readMessages(stream, resetTimer)) {
        failures = 0
        lastEventId = message.id ?? lastEventId
        yield message
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (!wasOpen || isFinal(error)) throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      connection.abort()
    }
    await pause(backoffMs(++failures), signal)
  }
}

/** Whether a retry can't help: the token is revoked, the resource is gone, or the server is broken. */
function isFinal(error: unknown): boolean {
  if (error instanceof InvalidResponse) return true
  const { status } = error as { status?: number }
  return status !== undefined && status < 500 && status !== 429
}

/** The format of the HTML standard, 9.2.6. */
export async function* readMessages(stream: ReadableStream, resetTimer: () => void): AsyncGenerator<Message> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  let buffer = ''
  let id: string | undefined
  let event = 'message'
  let data: string[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      resetTimer()
      buffer += value
      // A CR at the end may be the first half of CRLF.
      const lines = buffer.split(/\r\n|\n|\r(?!$)/)
      buffer = lines.pop() ?? ''
      for (const line of lines) {
        if (line !== '') {
          const [, name = '', text = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
          if (name === 'id') id = text
          else if (name === 'event') event = text
          else if (name === 'data') {
            data.push(text)
            length += text.length + 1
          }
          continue
        }
        if (data.length > 0) yield { id, event, data: data.join('\n') }
        id = undefined
        event = 'message'
        data = []
        length = 0
      }
      // Counts the data of the current message and the incomplete line.
      if (length + buffer.length > maxMessageLength) {
        throw new InvalidResponse('The server sent a message of more than 1 MiB.')
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
