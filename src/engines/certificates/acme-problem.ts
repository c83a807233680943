// Errors of ACME requests: no usable response, or a problem document.

/** There was no response, or an invalid one. */
export class Unreachable extends Error {}

const errorPrefix = 'urn:ietf:params:acme:error:'
const maxDetailLength = 500

/** A refusal in the authority's own words (RFC 8555, section 6.7). */
export class AcmeProblem extends Error {
  readonly status: number
  /** The type without its prefix, such as `rateLimited`. */
  readonly code: string
  readonly retryAt: Date | null
  /** The names in the subproblems. */
  readonly hostnames: string[]

  constructor(document: unknown, status: number, retryAt: Date | null = null) {
    const { type, detail, subproblems } = (document ?? {}) as Record<string, unknown>
    const parts = Array.isArray(subproblems) ? (subproblems as Record<string, unknown>[]) : []
    const code = String(type ?? '').replace(errorPrefix, '') || `HTTP ${status}`
    const details = [detail, ...parts.map((part) => part?.detail)].filter((text) => typeof text === 'string')
    super(
      `${cleanText(details.join(' ')) || 'The certificate authority refused without a reason.'} (${cleanText(code)})`,
    )
    this.status = status
    this.code = code
    this.retryAt = retryAt
    this.hostnames = parts.flatMap((part) => {
      const { value } = (part?.identifier ?? {}) as { value?: unknown }
      return typeof value === 'string' ? [value] : []
    })
  }
}

/** Shortens an authority's text and removes control characters, because owners see it and we log it. */
export function cleanText(text: string): string {
  const clean = text.replace(/[\p{C}\s]+/gu, ' ').trim()
  return clean.length > maxDetailLength ? `${clean.slice(0, maxDetailLength)}…` : clean
}

/** Parses seconds or a date (RFC 9110, section 10.2.3). */
export function readRetryAfter(header: string | undefined, now = Date.now()): Date | null {
  if (!header) return null
  const atMs = /^\d{1,9}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header)
  return Number.isNaN(atMs) ? null : new Date(atMs)
}
