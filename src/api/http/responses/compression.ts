// Compression: large responses under /api as they are sent, and public documents once.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { etagIn } from '../../../platform/http/etags.ts'

export type Encoding = 'br' | 'gzip'

const brotli = promisify(brotliCompress)
const gzipped = promisify(gzip)

/** The client's preferred encoding, brotli among equals; null if it accepts none of ours. */
export function encodingFor(accepted: string | undefined): Encoding | null {
  if (!accepted) return null
  const weights = new Map<string, number>()
  for (const item of accepted.toLowerCase().split(',')) {
    const [name = '', ...options] = item.split(';').map((part) => part.trim())
    const weight = Number(options.find((option) => option.startsWith('q='))?.slice(2) ?? 1)
    weights.set(name, Number.isNaN(weight) ? 0 : weight)
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0
  const best: Encoding = weightOf('br') >= weightOf('gzip') ? 'br' : 'gzip'
  const weight = weightOf(best)
  return weight > 0 && weight >= (weights.get('identity') ?? 0) ? best : null
}

/** `once`: the result is cached, so it may take longer. */
export function compress(octets: Uint8Array | string, encoding: Encoding, once: boolean): Promise<Buffer> {
  if (encoding === 'gzip') return gzipped(octets, { level: once ? 9 : 6 })
  return brotli(octets, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: once ? 6 : 4,
      [constants.BROTLI_PARAM_SIZE_HINT]: octets.length,
    },
  })
}

export function addVary(reply: FastifyReply, name: string): void {
  const current = reply.getHeader('vary')
  reply.header('vary', current ? `${current}, ${name}` : name)
}

// A response that fits into one packet isn't worth compressing.
const minOctets = 1_400

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The response may hold a secret. Compression would leak it through the length if others control text next to it.
     */
    secretAnswer?: boolean
  }
}

/**
 * Compresses only what is read. Responses to changes are small, and may hold a secret next to text of others. Streams
 * bypass this, because they write to the connection directly.
 */
export function useCompression(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload: unknown, done) => {
    const text = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : ''
    const isLarge = text.length >= minOctets && request.method === 'GET' && reply.statusCode === 200
    if (!isLarge || request.routeOptions.config.secretAnswer) return done(null, payload)
    addVary(reply, 'Accept-Encoding')
    const encoding = encodingFor(request.headers['accept-encoding'])
    if (!encoding) return done(null, payload)
    compress(text, encoding, false).then(
      (octets) => {
        reply.removeHeader('content-length')
        reply.header('content-encoding', encoding)
        const etag = reply.getHeader('etag')
        if (etag) reply.header('etag', etagIn(String(etag), encoding))
        done(null, octets)
      },
      (error) => done(error),
    )
  })
}
