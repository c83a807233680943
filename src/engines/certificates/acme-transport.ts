// The way to an ACME server: bounded in time and size, and every refusal read into one kind of error.
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { rootCertificates } from 'node:tls'

export type Reply = { status: number; headers: Record<string, string | undefined>; data: unknown }

export type Transport = {
  request(url: string, method: string, body: unknown, signal: AbortSignal): Promise<Reply>
  close(): void
}

/** No answer, or none that an ACME server gives. */
export class Unreachable extends Error {}

const errorPrefix = 'urn:ietf:params:acme:error:'
const highestDetailLength = 500

/** A refusal in the authority's own words (RFC 8555, section 6.7). */
export class AcmeProblem extends Error {
  readonly status: number
  /** The type without its prefix, such as `rateLimited`. */
  readonly code: string
  readonly retryAt: Date | null
  /** Names that the subproblems are about. */
  readonly hostnames: string[]

  constructor(document: unknown, status: number, retryAt: Date | null = null) {
    const { type, detail, subproblems } = (document ?? {}) as Record<string, unknown>
    const parts = Array.isArray(subproblems) ? (subproblems as Record<string, unknown>[]) : []
    const code = String(type ?? '').replace(errorPrefix, '') || `HTTP ${status}`
    const details = [detail, ...parts.map((part) => part?.detail)].filter((text) => typeof text === 'string')
    super(`${plain(details.join(' ')) || 'The certificate authority refused without a reason.'} (${plain(code)})`)
    this.status = status
    this.code = code
    this.retryAt = retryAt
    this.hostnames = parts.flatMap((part) => {
      const { value } = (part?.identifier ?? {}) as { value?: unknown }
      return typeof value === 'string' ? [value] : []
    })
  }
}

/** What an authority says is shown to owners and written to logs, so it is kept short and free of control characters. */
function plain(text: string): string {
  const clean = text.replace(/[\p{C}\s]+/gu, ' ').trim()
  return clean.length > highestDetailLength ? `${clean.slice(0, highestDetailLength)}…` : clean
}

/** Seconds or a date (RFC 9110, section 10.2.3). */
export function readRetryAfter(header: string | undefined, now = Date.now()): Date | null {
  if (!header) return null
  const atMs = /^\d{1,9}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header)
  return Number.isNaN(atMs) ? null : new Date(atMs)
}

// Authorities answer within seconds; a chain of certificates has some kilobytes.
const timeoutMs = 30_000
const highestBodyOctets = 256 * 1024

export function createTransport(caFile: string | null): Transport {
  // Beside the ordinary roots, because the file usually names the one root of a private authority.
  const ca = caFile ? { ca: [...rootCertificates, readFileSync(caFile, 'utf8')] } : {}
  const agent = new Agent({ keepAlive: true, ...ca })

  function send(url: string, method: string, body: unknown, signal: AbortSignal): Promise<Reply & { text: string }> {
    const payload = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const sent = request(url, {
        method: method.toUpperCase(),
        agent,
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        headers: {
          // Section 6.1 asks for one.
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
          if (octets > highestBodyOctets) sent.destroy(new Error('the answer is too long'))
          else chunks.push(chunk)
        })
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const headers = response.headers as Reply['headers']
          resolve({ status: response.statusCode!, headers, text, data: text })
        })
      })
      sent.end(payload)
    })
  }

  return {
    async request(url, method, body, signal) {
      const host = URL.canParse(url) ? new URL(url).host : url
      const reply = await send(url, method, body, signal).catch((error: Error & { code?: string }) => {
        // Stopping is not the authority's fault.
        if (signal.aborted) throw error
        const reason = error.name === 'TimeoutError' ? `no answer within ${timeoutMs / 1000} s` : error.message
        throw new Unreachable(
          `The certificate authority at ${host} cannot be reached: ${plain(reason || String(error.code))}.`,
        )
      })
      if (reply.text !== '' && /json/.test(reply.headers['content-type'] ?? '')) {
        try {
          reply.data = JSON.parse(reply.text)
        } catch {
          throw new Unreachable(`The certificate authority at ${host} answered with something that is not JSON.`)
        }
      }
      if (reply.status < 400) return reply
      const problem = new AcmeProblem(
        typeof reply.data === 'object' ? reply.data : null,
        reply.status,
        readRetryAfter(reply.headers['retry-after']),
      )
      // The client signs again with the nonce that comes with the refusal.
      if (problem.code === 'badNonce') return reply
      throw problem
    },
    close: () => agent.destroy(),
  }
}
