// The responses of operations for openapi.yaml: problems with their codes, headers, 304 and streams.
import { STATUS_CODES } from 'node:http'
import type { RouteOptions } from 'fastify'
import { Fault, type FaultCode, faults } from '../../../platform/errors.ts'
import { problemOf, statuses } from '../responses/problem.ts'
import { apiVersion } from '../responses/versions.ts'

/** The part of a route that determines its responses. */
export type Described = Pick<RouteOptions, 'method' | 'config' | 'schema'>

type Reference = { $ref: string }
export type Response = {
  description: string
  headers?: Record<string, Reference>
  content?: Record<string, { schema: Reference; example?: unknown }>
}
export type Responses = Record<string, Response | Reference>

const header = (description: string, example: string, more: object = {}) => ({
  description,
  ...more,
  schema: { type: 'string' },
  example,
})

/** The header components that responses refer to. */
export const headers = {
  'X-Request-Id': header('Names the request, in problems and in the log of the server', 'req_7m2k9xq4tb', {
    required: true,
  }),
  'Api-Version': header('Version of the API that answered', apiVersion, { required: true }),
  'RateLimit-Policy': header(
    'Requests in so many seconds, for the token and for all tokens of its account; without a valid token, for the address',
    '"token";q=600;w=60, "account";q=1800;w=60',
    { required: true },
  ),
  RateLimit: header(
    'Requests left and seconds until there are new ones, for both, or for the address',
    '"token";r=588;t=17, "account";r=1712;t=42',
    { required: true },
  ),
  ETag: header('Version of the resource, for `If-None-Match` and `If-Match`', '"V1StGXR8Z5jdHi6BmyT7f2hQ0uE"'),
  Location: header('Path of what was made', '/api/projects/docs', { required: true }),
  Link: header(
    'Path of the next page, with `rel="next"`, left out on the last; with `rel="deprecation"`, what to use instead',
    '</api/projects?cursor=eyJ>; rel="next"',
  ),
  Deprecation: header(
    'Since when a part of the operation is deprecated (RFC 9745); sent to those who use that part',
    '@1794787200',
  ),
  'Idempotency-Replayed': header('`true`: the stored answer to an earlier request with the same key', 'true'),
  'Zone-Served': header(
    'With `?wait=served`: `true`: both nameservers answer with the change; `false`: not within ten seconds, see the status of the zone',
    'true',
  ),
  'Production-Served': header(
    '`true`: every visitor gets the deployment; `false`: not within 30 seconds, see `GET /projects/{project}/production`',
    'true',
  ),
  'Upload-Offset': header('How many bytes of the content are here', '1048576'),
  'Retry-After': header('Seconds until a next try makes sense; with 403 only where something has to end first', '17'),
  'WWW-Authenticate': header('What is missing (RFC 6750)', 'Bearer realm="berth", error="invalid_token"'),
}

type HeaderName = keyof typeof headers

const outside: HeaderName[] = ['X-Request-Id', 'Api-Version']
const always: HeaderName[] = [...outside, 'RateLimit-Policy', 'RateLimit']

function named(names: Iterable<HeaderName>): Record<string, Reference> {
  return Object.fromEntries([...new Set(names)].map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const headersOfCodes: Partial<Record<FaultCode, HeaderName>> = {
  insufficient_scope: 'WWW-Authenticate',
  idempotency_in_progress: 'Retry-After',
  discovery_in_progress: 'Retry-After',
  import_in_progress: 'Retry-After',
  // For waits and streams, which end.
  quota_exceeded: 'Retry-After',
  precondition_required: 'ETag',
  rate_limited: 'Retry-After',
  overloaded: 'Retry-After',
  database_unavailable: 'Retry-After',
}

const commonFaults: FaultCode[] = [
  'unknown_api_version',
  'invalid_request',
  'missing_token',
  'invalid_token',
  'token_expired',
  'token_revoked',
  'account_suspended',
  'token_limited_to_records',
  'https_required',
  'validation_failed',
  'rate_limited',
  'internal_error',
  'overloaded',
  'database_unavailable',
]

/** Whether the change supports If-Match; a resource that can't be read alone has no ETag. */
export function isConditional({ method, config }: Described): boolean {
  return ['PUT', 'PATCH', 'DELETE'].includes(String(method)) && !config?.withoutEtag
}

function queryOf({ schema }: Described): object {
  return (schema?.querystring as { properties?: object } | undefined)?.properties ?? {}
}

/** Whether the operation returns one resource with its ETag, and 304 to clients that have it. */
export function isSingle(route: Described): boolean {
  const body = (route.schema?.response as Record<string, { $ref?: string }> | undefined)?.[200]
  return route.method === 'GET' && !route.config?.withoutEtag && !body?.$ref?.endsWith('List')
}

/** Whether the response is a resource with an ETag, read or just written. */
function showsVersion(route: Described, status: string): boolean {
  if (route.config?.withoutEtag) return false
  // A PUT sends no ETag if it stores something other than the bytes sent (RFC 9110, 9.3.4), unless the response shows
  // what is stored.
  return isSingle(route) || !!route.config?.showsVersion || route.method === 'PATCH' || status === '201'
}

/** Every code that an operation can respond with, from its own list and its shape, in catalogue order. */
function faultsOf(route: Described): FaultCode[] {
  const { method, config, schema = {} } = route
  const codes = new Set<FaultCode>([...commonFaults, ...(config?.faults ?? [])])
  const add = (...more: FaultCode[]) => {
    for (const code of more) codes.add(code)
  }
  if (config?.scope) add('insufficient_scope')
  if (config?.accountWide && !schema.params) add('token_limited_to_projects')
  if (schema.params) add('not_found')
  if (method !== 'GET') add('invalid_json', 'body_too_large', 'unsupported_media_type')
  if ('cursor' in queryOf(route)) add('invalid_cursor')
  if (method === 'POST') add('invalid_idempotency_key', 'idempotency_in_progress', 'idempotency_key_reused')
  // Creating a resource may exceed a quota.
  const makes = method === 'POST' && 201 in ((schema.response as object | undefined) ?? {})
  if (makes && config?.scope !== 'operator') add('quota_exceeded')
  if (isConditional(route)) add('precondition_failed')
  return (Object.keys(faults) as FaultCode[]).filter((code) => codes.has(code))
}

function problemResponse(status: number, codes: FaultCode[], common: HeaderName[]): Response {
  const lines = codes.map((code) => `- \`${code}\`: ${faults[code].cause}`)
  const example = problemOf(new Fault(codes[0]!), 'https://api.example.com', 'req_7m2k9xq4tb')
  const special = codes.flatMap((code) => headersOfCodes[code] ?? [])
  if (status === 401) special.push('WWW-Authenticate')
  // A stored conflict is replayed for the same key.
  if (status === 409 && common === always) special.push('Idempotency-Replayed')
  return {
    description: lines.join('\n'),
    headers: named([...common, ...special]),
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' }, example } },
  }
}

function byStatus(codes: FaultCode[]): [status: number, codes: FaultCode[]][] {
  return [...Map.groupBy(codes, (code) => statuses[code])].sort(([a], [b]) => a - b)
}

const capital = (word: string) => `${word[0]!.toUpperCase()}${word.slice(1)}`

// Codes that follow from the shape of an operation, and the word for that shape; empty if the status says it.
const forms: Partial<Record<FaultCode, string>> = {
  ...Object.fromEntries(commonFaults.map((code) => [code, ''])),
  ...{ not_found: '', precondition_failed: '', body_too_large: '', unsupported_media_type: '' },
  ...{ insufficient_scope: 'Scoped', token_limited_to_projects: 'Account', quota_exceeded: 'Limited' },
  ...{ invalid_cursor: 'List', invalid_json: 'Change' },
  ...{ invalid_idempotency_key: 'Post', idempotency_in_progress: 'Post', idempotency_key_reused: 'Post' },
}

/**
 * The status, prefixed with the shape of the operations that share the response, or with the one operation that has
 * codes of its own: `ListBadRequest`, `CreateDomainConflict`. Adding a code changes no name.
 */
function nameOf({ schema }: Described, status: number, codes: FaultCode[]): string {
  const phrase = STATUS_CODES[status]!.replaceAll(' ', '')
  if (codes.some((code) => forms[code] === undefined)) return `${capital(schema!.operationId!)}${phrase}`
  const words = new Set(codes.map((code) => forms[code]))
  // Every POST is a change.
  if (words.has('Post')) words.delete('Change')
  return [...words, phrase].join('')
}

const notModified: Response = {
  description: 'The copy named in `If-None-Match` is current',
  headers: named([...always, 'ETag']),
}

/** The responses of an operation under /api; those that several operations share go to `shared`. */
export function responsesOf(route: Described, declared: Responses, shared: Record<string, Response>): Responses {
  const responses: Responses = {}
  for (const [status, response] of Object.entries(declared) as [string, Response][]) {
    const own: HeaderName[] = []
    if (status === '201') own.push('Location')
    if (showsVersion(route, status)) own.push('ETag')
    if ('cursor' in queryOf(route)) own.push('Link')
    if (route.method === 'POST') own.push('Idempotency-Replayed')
    if (route.config?.showsServed) own.push(route.config.showsServed)
    if (route.config?.showsOffset) own.push('Upload-Offset')
    if (route.config?.deprecated) own.push('Deprecation', 'Link')
    responses[status] = { ...response, headers: named([...always, ...own]) }
    const { stream } = route.config ?? {}
    if (stream) response.content!['text/event-stream'] = { schema: { $ref: `#/components/schemas/${stream.$id}` } }
  }
  const share = (status: number, name: string, response: Response) => {
    shared[name] ??= response
    if (shared[name].description !== response.description) throw new Error(`two responses would be named ${name}`)
    responses[status] = { $ref: `#/components/responses/${name}` }
  }
  if (isSingle(route)) share(304, 'NotModified', notModified)
  for (const [status, codes] of byStatus(faultsOf(route))) {
    share(status, nameOf(route, status, codes), problemResponse(status, codes, always))
  }
  return responses
}

/** The same for an operation outside /api, which lists all its codes itself. */
export function responsesOutside(route: Described, declared: Responses): Responses {
  const responses: Responses = {}
  for (const [status, response] of Object.entries(declared) as [string, Response][]) {
    responses[status] = { ...response, headers: named(outside) }
  }
  for (const [status, codes] of byStatus(route.config?.faults ?? [])) {
    responses[status] = problemResponse(status, codes, outside)
  }
  return responses
}
