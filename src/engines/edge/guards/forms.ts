// Reads small HTML forms.
import type { IncomingMessage } from 'node:http'

const maxBytes = 8 << 10
const timeoutMs = 10_000

/** Null if the body is not a form, is too large, or doesn't arrive in time. */
export function readForm(request: IncomingMessage): Promise<URLSearchParams | null> {
  const isForm = /^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? '')
  if (!isForm) return Promise.resolve(null)
  const { promise, resolve } = Promise.withResolvers<URLSearchParams | null>()
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => resolve(null), timeoutMs)
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes) resolve(null)
    else chunks.push(chunk)
  })
  request.on('end', () => resolve(new URLSearchParams(Buffer.concat(chunks).toString())))
  request.on('error', () => resolve(null))
  request.on('close', () => resolve(null))
  return promise.finally(() => {
    clearTimeout(timer)
    if (!request.readableEnded) request.pause()
  })
}
