// A reader of server-sent events over a real socket.
import { listenOnce, type TestApi } from './api.ts'
import { createResponseChecker } from './responses.ts'

export type Message = { id?: string; event?: string; data: unknown }

export type StreamReader = { status: number; next(): Promise<Message | null>; close(): void }

export async function readStream(
  api: TestApi,
  path: string,
  headers: Record<string, string> = {},
  token = api.token,
): Promise<StreamReader> {
  const closing = new AbortController()
  const response = await fetch(`${await listenOnce(api.app)}/api${path}`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${token}`, ...headers },
    signal: AbortSignal.any([closing.signal, AbortSignal.timeout(60_000)]),
  })
  const { status } = response
  createResponseChecker(api.app)('GET', path, {
    status,
    headers: Object.fromEntries(response.headers),
    body: undefined,
    text: '',
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let buffer = ''
  return {
    status,
    async next() {
      for (;;) {
        const end = buffer.indexOf('\n\n')
        if (end >= 0) {
          const block = buffer.slice(0, end)
          buffer = buffer.slice(end + 2)
          const fields = block.split('\n').map((text) => text.split(/: ?(.*)/s) as [string, string])
          const field = (name: string) => fields.find(([key]) => key === name)?.[1]
          const data = field('data')
          if (data === undefined) continue
          return { id: field('id'), event: field('event'), data: JSON.parse(data) }
        }
        const { done, value } = await reader.read()
        if (done) return null
        buffer += value
      }
    },
    close: () => closing.abort(),
  }
}
