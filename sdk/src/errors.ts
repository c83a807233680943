// The errors of the SDK.
import type { Deployment, Domain, Problem } from './types.ts'

/** A response with a status of 400 or above, after all retries. */
export class BerthError extends Error {
  override readonly name = 'BerthError'
  readonly status: number
  /** A stable code for programs; `unknown` if the response isn't Berth's, but for example a proxy's. */
  readonly code: Problem['code'] | 'unknown'
  /** The response body; null if the response isn't Berth's. */
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

  /** The request ID, for support tickets. */
  get requestId(): string | null {
    return this.problem?.requestId ?? this.response.headers.get('x-request-id')
  }

  /** With 422, the refused fields. */
  get errors(): NonNullable<Problem['errors']> {
    return this.problem?.errors ?? []
  }
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body
}

/** A malformed or oversized response. A retry wouldn't help. */
export class InvalidResponse extends Error {
  override readonly name = 'InvalidResponse'
}

/** A deployment ended as ERROR or CANCELED; `deployment.error` says why. */
export class DeploymentFailed extends Error {
  override readonly name = 'DeploymentFailed'
  readonly deployment: Deployment

  constructor(deployment: Deployment) {
    const { id, state, error } = deployment
    super(`${id} is ${state}${error ? `: ${error.code}: ${error.message}` : ''}`)
    this.deployment = deployment
  }
}

/** We couldn't issue the certificate of a verified domain; `domain.certificate.lastError` says why. */
export class DomainFailed extends Error {
  override readonly name = 'DomainFailed'
  readonly domain: Domain

  constructor(domain: Domain) {
    const { name, ssl, certificate } = domain
    super(`The certificate of ${name} is ${ssl}${certificate?.lastError ? `: ${certificate.lastError}` : ''}`)
    this.domain = domain
  }
}
