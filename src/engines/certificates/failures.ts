// Why a certificate was not issued, in words for its owner, and when to retry.
import { AcmeProblem, Unreachable } from './acme-problem.ts'

/**
 * `unreachable`: the authority is down or broken, and the order still exists. `limited`: rate-limited. `refused`: it
 * won't issue until somebody changes something. `failed`: everything else, usually a failed validation.
 */
export type FailureKind = 'unreachable' | 'limited' | 'refused' | 'failed'

export class IssueFailure extends Error {
  readonly kind: FailureKind
  readonly retryAt: Date | null
  /** The name that failed, if it was a single one. */
  readonly hostname: string | null

  constructor(kind: FailureKind, message: string, more: { retryAt?: Date | null; hostname?: string | null } = {}) {
    super(message)
    this.kind = kind
    this.retryAt = more.retryAt ?? null
    this.hostname = more.hostname ?? null
  }
}

export type RetryTable = {
  /** Delays after consecutive failures. The last one repeats. */
  delaysMs: readonly number[]
  /** The minimum delay after a refusal. */
  refusedMs: number
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export const retryTable: RetryTable = {
  delaysMs: [
    // A new record or edge that the authority sees a moment later.
    minuteMs,
    5 * minuteMs,
    // A resolver that caches the old answer. Public authorities allow five failed validations per host and hour, so this
    // makes four attempts in the first hour.
    15 * minuteMs,
    hourMs,
    // An outage of the authority, or a name that doesn't point here yet.
    3 * hourMs,
    6 * hourMs,
    12 * hourMs,
    24 * hourMs,
  ],
  // Retries do not fix a CAA record or a forbidden name.
  refusedMs: 6 * hourMs,
}

// After an outage, thousands of domains must not retry at the same time.
const jitter = 0.1

// Public authorities have limits of up to a week. Waiting longer would let certificates expire.
const maxWaitMs = 8 * 24 * hourMs

/** When to retry after this many consecutive failures. A later Retry-After of the authority takes precedence. */
export function nextAttemptAt(table: RetryTable, failure: IssueFailure, failures: number, now = new Date()): Date {
  const listedMs = table.delaysMs[Math.min(failures, table.delaysMs.length) - 1] ?? 0
  const minMs = failure.kind === 'refused' ? Math.max(listedMs, table.refusedMs) : listedMs
  const atMs = now.getTime() + minMs * (1 + jitter * Math.random())
  return new Date(Math.min(Math.max(atMs, failure.retryAt?.getTime() ?? 0), now.getTime() + maxWaitMs))
}

const refusals = new Set([
  'rejectedIdentifier',
  'unsupportedIdentifier',
  'caa',
  'externalAccountRequired',
  'userActionRequired',
  'unsupportedContact',
  'invalidContact',
])

function kindOf(problem: AcmeProblem): FailureKind {
  if (problem.code === 'rateLimited' || problem.status === 429) return 'limited'
  if (refusals.has(problem.code)) return 'refused'
  if (problem.status >= 500 || problem.code === 'badNonce') return 'unreachable'
  return 'failed'
}

/** Converts an authority's error to an IssueFailure, and returns other errors unchanged. */
export function failureOf(error: unknown, hostname: string | null = null): unknown {
  if (error instanceof Unreachable) return new IssueFailure('unreachable', error.message)
  if (!(error instanceof AcmeProblem)) return error
  const named = error.hostnames.length === 1 ? error.hostnames[0]! : null
  return new IssueFailure(kindOf(error), error.message, { retryAt: error.retryAt, hostname: hostname ?? named })
}
