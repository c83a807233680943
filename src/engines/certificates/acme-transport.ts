// HTTPS requests to an ACME server, limited in time and size. Callers decide about retries.
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { rootCertificates } from 'node:tls'
import { cleanText, Unreachable } from './acme-problem.ts'

export type Reply = {
  status: number
  headers: Record<string, string | undefined>
  /** Parsed if it is JSON, else text. */
  data: unknown
}

export type Transport = {
  /** Resolves with every response, including refusals. */
  request(url: string, method: 'GET' | 'HEAD' | 'POST', body: object | null, signal: AbortSignal): Promise<Reply>
  close(): void
}

// Authorities respond within seconds, and a chain of certificates takes a few kilobytes.
const defaultTimeoutMs = 30_000
const maxBodyOctets = 256 * 1024

export function createTransport(caFile: string | null, timeoutMs = defaultTimeoutMs): Transport {
  // In addition to the default roots, because the file usually only contains the root of a private authority.
  const ca = caFile ? { ca: [...rootCertificates, readFileSync(caFile, 'utf8')] } : {}
  const agent = new Agent({ keepAlive: true, ...ca })

  function send(url: string, method: string, body: object | null, signal: AbortSignal) {
    const payload = body === null ? undefined : JSON.stringify(body)
    return new Promise<Omit<Reply, 'data'> & { text: string }>((resolve, reject) => {
      const sent = request(url, {
        method,
        agent,
        signal,
        headers: {
          // Required by RFC 8555, section 6.1.
          'user-agent': 'berth',
          ...(payload !== undefined && {
            'content-type': 'application/jose+json',
            'content-length': Buffer.byteLength(payload),
          }),
        },
      })
      sent.on('error', reject)
      sent.on('response', (response) => {
        const chunks: Buffer[] = []
        let octets = 0
        response.on('data', (chunk: Buffer) => {
          octets += chunk.length
          if (octets > maxBodyOctets) sent.destroy(new Error('the answer is too long'))
          else chunks.push(chunk)
        })
        response.on('error', reject)
        response.on('end', () => {
          const headers = response.headers as Reply['headers']
          resolve({ status: response.statusCode!, headers, text: Buffer.concat(chunks).toString() })
        })
      })
      sent.end(payload)
    })
  }

  return {
    async request(url, method, body, signal) {
      const host = URL.canParse(url) ? new URL(url).host : url
      const timeout = AbortSignal.timeout(timeoutMs)
      const either = AbortSignal.any([signal, timeout])
      const { text, ...reply } = await send(url, method, body, either).catch((error: Error & { code?: string }) => {
        // An abort isn't the authority's error.
        if (signal.aborted) throw error
        const reason = timeout.aborted ? `no answer within ${timeoutMs / 1000} s` : error.message
        throw new Unreachable(
          `The certificate authority at ${host} cannot be reached: ${cleanText(reason || String(error.code))}.`,
        )
      })
      if (text === '' || !/json/.test(reply.headers['content-type'] ?? '')) return { ...reply, data: text }
      try {
        return { ...reply, data: JSON.parse(text) }
      } catch {
        throw new Unreachable(`The certificate authority at ${host} answered with something that is not JSON.`)
      }
    },
    close: () => agent.destroy(),
  }
}
