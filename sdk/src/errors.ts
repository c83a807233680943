// What callers catch: an answer that is an error, and a deployment or domain that did not become what was waited for.
import type { Deployment, Domain, Problem } from './types.ts'

/** An answer with a status of 400 or more, after all retries. */
export class BerthError extends Error {
  override readonly name = 'BerthError'
  readonly status: number
  /** Stable, for programs; `unknown` if the answer is not one of Berth's, but of a proxy on the way. */
  readonly code: Problem['code'] | 'unknown'
  /** The whole body of the answer; null if it is not one of Berth's. */
  readonly problem: Problem | null
  readonly response: Response

  constructor(response: Response, body: unknown) {
    const problem = isProblem(body) ? body : null
    super(problem ? `${problem.code}: ${problem.detail}` : `${response.status} ${response.statusText}`.trim())
    this.status = response.status
    this.code = problem?.code ?? 'unknown'
    this.problem = problem
    this.response = response
  }

  /** To be named in a ticket. */
  get requestId(): string | null {
    return this.problem?.requestId ?? this.response.headers.get('x-request-id')
  }

  /** With 422: every field that was refused. */
  get errors(): NonNullable<Problem['errors']> {
    return this.problem?.errors ?? []
  }
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body
}

/** A response that isn't one of the API: it's malformed, or larger than any of ours. A retry wouldn't help. */
export class InvalidResponse extends Error {
  override readonly name = 'InvalidResponse'
}

/** A deployment ended in ERROR or CANCELED; `deployment.error` says why. */
export class DeploymentFailed extends Error {
  override readonly name = 'DeploymentFailed'
  readonly deployment: Deployment

  constructor(deployment: Deployment) {
    const { id, state, error } = deployment
    super(`${id} is ${state}${error ? `: ${error.code}: ${error.message}` : ''}`)
    this.deployment = deployment
  }
}

/** A domain is verified, and its certificate could not be issued; `domain.certificate.lastError` says why. */
export class DomainFailed extends Error {
  override readonly name = 'DomainFailed'
  readonly domain: Domain

  constructor(domain: Domain) {
    const { name, ssl, certificate } = domain
    super(`The certificate of ${name} is ${ssl}${certificate?.lastError ? `: ${certificate.lastError}` : ''}`)
    this.domain = domain
  }
}
