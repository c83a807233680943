// Errors as RFC 9457 problems; the only file that maps codes to HTTP statuses.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import {
  isDatabaseLost,
  isPoolFull,
  isReadOnly,
  isTimedOut,
  raised,
  refusedQuota,
} from '../../../platform/database/database.ts'
import { Fault, type FaultCode, faults } from '../../../platform/errors.ts'
import { quotaFault } from '../../../services/quotas/index.ts'

export const statuses: Record<FaultCode, number> = {
  invalid_json: 400,
  invalid_request: 400,
  request_timeout: 408,
  headers_too_large: 431,
  invalid_cursor: 400,
  invalid_idempotency_key: 400,
  unknown_api_version: 400,
  authorization_pending: 400,
  slow_down: 400,
  expired_token: 400,
  access_denied: 400,
  missing_token: 401,
  invalid_token: 401,
  token_expired: 401,
  token_revoked: 401,
  invalid_signature: 401,
  oidc_token_refused: 403,
  sign_in_failed: 401,
  not_signed_in: 401,
  insufficient_scope: 403,
  token_limited_to_records: 403,
  token_limited_to_projects: 403,
  token_outlives_caller: 403,
  account_suspended: 403,
  quota_exceeded: 403,
  https_required: 403,
  not_invited: 403,
  proof_required: 403,
  cross_origin: 403,
  insecure_origin: 403,
  owner_required: 403,
  not_found: 404,
  route_not_found: 404,
  method_not_allowed: 405,
  project_exists: 409,
  project_has_domains: 409,
  deployment_finished: 409,
  deployment_not_ready: 409,
  preview_not_protected: 409,
  deployment_in_production: 409,
  deployment_untrusted: 409,
  pull_request_changed: 409,
  pull_request_closed: 409,
  approval_not_needed: 409,
  deployment_building: 409,
  domain_exists: 409,
  domain_taken: 409,
  claim_ended: 409,
  domain_has_wildcard: 409,
  domain_has_redirects: 409,
  record_conflict: 409,
  key_exists: 409,
  zone_follows_primary: 409,
  dnssec_not_ready: 409,
  discovery_in_progress: 409,
  import_in_progress: 409,
  upload_offset_wrong: 409,
  project_without_repository: 409,
  source_incomplete: 409,
  ticket_closed: 409,
  invalid_transition: 409,
  account_exists: 409,
  last_sign_in_method: 409,
  passkey_exists: 409,
  totp_exists: 409,
  sign_in_first: 409,
  member_exists: 409,
  last_owner: 409,
  idempotency_in_progress: 409,
  link_not_valid: 410,
  sign_in_step_over: 410,
  precondition_failed: 412,
  precondition_required: 428,
  body_too_large: 413,
  unsupported_media_type: 415,
  validation_failed: 422,
  ref_not_found: 422,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal_error: 500,
  identity_provider_unavailable: 503,
  overloaded: 503,
  database_unavailable: 503,
}

// Fault codes for Fastify's own errors.
const fastifyFaults: Record<string, FaultCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
}

function wrongType(request: FastifyRequest): Fault {
  const { consumes = ['application/json'] } = (request.routeOptions.schema ?? {}) as { consumes?: string[] }
  const sent = request.headers['content-type']?.slice(0, 100)
  const detail = `Send the body as ${consumes.join(' or ')}; ${sent ? `this one is ${sent}` : 'this one has no Content-Type'}.`
  return new Fault('unsupported_media_type', detail)
}

/** A reader doesn't need to know what may have become of a change. */
function forReader(fault: Fault): Fault {
  return new Fault(fault.code, 'The server lost its connection to the database. Nothing was changed.', {
    ...fault.members,
    cause: fault.cause,
  })
}

/** The fault in words that fit the request. */
function phraseFor(fault: Fault, request: FastifyRequest): Fault {
  if (fault.code === 'unsupported_media_type') return wrongType(request)
  const isReading = request.method === 'GET' || request.method === 'HEAD'
  return fault.code === 'database_unavailable' && isReading ? forReader(fault) : fault
}

/** Any error as a Fault; an unexpected error becomes an internal error that keeps its cause. */
export function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const { code = '', statusCode = 500, message } = error as FastifyError
  const known = fastifyFaults[code]
  if (known) return new Fault(known, undefined, { cause: error })
  if (statusCode >= 400 && statusCode < 500) return new Fault('invalid_request', message, { cause: error })
  const quota = refusedQuota(error)
  if (quota) return quotaFault(quota)
  if (raised(error, 'BQ003') !== null) return new Fault('zone_follows_primary')
  if (raised(error, 'BQ004') !== null) return new Fault('deployment_untrusted')
  if (isPoolFull(error)) {
    const detail = 'Every database connection is in use. Nothing was stored.'
    return new Fault('overloaded', detail, { cause: error, retryAfterSeconds: 2 })
  }
  if (isReadOnly(error)) {
    const detail = 'The database is read-only at the moment. Nothing was stored.'
    return new Fault('database_unavailable', detail, { cause: error, retryAfterSeconds: 5 })
  }
  if (isDatabaseLost(error)) return new Fault('database_unavailable', undefined, { cause: error, retryAfterSeconds: 2 })
  if (isTimedOut(error)) {
    const detail = 'The database took too long for this request. Nothing was stored.'
    return new Fault('overloaded', detail, { cause: error, retryAfterSeconds: 5 })
  }
  return new Fault('internal_error', undefined, { cause: error })
}

export function problemOf(fault: Fault, baseUrl: string, requestId: string) {
  const { errors, requiredScope, limit, used, max, record } = fault.members
  return {
    type: `${baseUrl}/errors/${fault.code}`,
    title: faults[fault.code].title,
    status: statuses[fault.code],
    detail: fault.message,
    code: fault.code,
    requestId,
    ...(errors && { errors }),
    ...(requiredScope && { requiredScope }),
    ...(limit && { limit, used, max }),
    ...(record && { record }),
  }
}

export function sendFault(
  original: Fault,
  baseUrl: string,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const fault = phraseFor(original, request)
  const status = statuses[fault.code]
  const { allow, etag, retryAfterSeconds, requiredScope } = fault.members
  // A session is a cookie, for which HTTP has no authentication scheme.
  if (status === 401 && fault.code !== 'not_signed_in' && fault.code !== 'sign_in_failed') {
    // A client that sent no token learns only the scheme (RFC 6750, 3.1). Repository hosts never send tokens.
    const sent = fault.code !== 'missing_token'
    const bearer = `Bearer realm="berth"${sent ? ', error="invalid_token"' : ''}`
    reply.header('www-authenticate', fault.code === 'invalid_signature' ? 'HMAC-SHA256 realm="berth"' : bearer)
  }
  if (requiredScope) {
    reply.header('www-authenticate', `Bearer realm="berth", error="insufficient_scope", scope="${requiredScope}"`)
  }
  if (etag) reply.header('etag', etag)
  if (allow) reply.header('allow', allow.join(', '))
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(Math.max(1, Math.ceil(retryAfterSeconds))))
  if (fault.code === 'database_unavailable') request.server.outages.record(request, fault)
  else if (status >= 500) request.log.error({ requestId: request.id, err: fault.cause ?? fault }, fault.code)
  return reply
    .code(status)
    .type('application/problem+json')
    .serializer((payload: unknown) => JSON.stringify(payload))
    .send(problemOf(fault, baseUrl, request.id))
}
