// Compressed answers: large ones under /api as they are sent, and those for everybody once.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { etagIn } from '../../../platform/http/etags.ts'

export type Encoding = 'br' | 'gzip'

const brotli = promisify(brotliCompress)
const gzipped = promisify(gzip)

/** The encoding that the client likes best, brotli among equals; null: none of ours. */
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

/** `once`: the result is kept, so that it may take longer. */
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
  const given = reply.getHeader('vary')
  reply.header('vary', given ? `${given}, ${name}` : name)
}

// What fits into one packet is not worth the work.
const minOctets = 1_400

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer may hold a secret. Its length would tell about it, if others had a say in what is beside it. */
    secretAnswer?: boolean
  }
}

/**
 * Compresses what is read. What a change answers is small, and may hold a secret beside text of others; streams never
 * come here, because they are written to the connection.
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
