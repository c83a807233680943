// Reads the body of a small form.
import type { IncomingMessage } from 'node:http'

const longest = 8 << 10
const readMs = 10_000

/** Null if it is none, too long, or does not come in time. */
export function readForm(request: IncomingMessage): Promise<URLSearchParams | null> {
  const isForm = /^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? '')
  if (!isForm) return Promise.resolve(null)
  const { promise, resolve } = Promise.withResolvers<URLSearchParams | null>()
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => resolve(null), readMs)
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > longest) resolve(null)
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
