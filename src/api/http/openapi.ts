// Generates openapi.yaml from the routes: operations come from their schemas, common parts from here.
import swagger from '@fastify/swagger'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { Fault, type FaultCode, faults } from '../../platform/errors.ts'
import { problemOf, statuses } from './problem.ts'
import { apiVersion } from './transport.ts'

const description =
  `The management API of a hosting platform: deployments, domains with automatic SSL, DNS, projects and
support tickets. Every request carries \`Authorization: Bearer <token>\`. Errors are RFC 9457 problems whose \`code\` is
stable. Lists are paged by \`cursor\`. A POST may carry an \`Idempotency-Key\` and be sent again safely. Single resources
carry an \`ETag\`. \`RateLimit\` tells what is left to the token and to its account. Versions are dated; this is
${apiVersion}.`.replaceAll('\n', ' ')

const tags = [
  { name: 'Projects', description: 'Projects, their settings, linked repositories and build-time variables' },
  { name: 'Deployments', description: 'Builds of a project: create, watch, cancel, promote' },
  { name: 'Domains', description: 'Custom domains: verification and certificates' },
  { name: 'DNS', description: 'Records of domains on the platform’s own nameservers' },
  { name: 'Tickets', description: 'Support tickets' },
  { name: 'Tokens', description: 'API tokens: make, narrow, rotate, revoke' },
  { name: 'Webhooks', description: 'Where events are sent' },
  { name: 'Events', description: 'Everything that happened, as a list and as a live stream' },
  { name: 'Account', description: 'The caller’s account and the platform' },
  { name: 'Operator', description: 'The platform’s own staff' },
]

const commonFaults: FaultCode[] = [
  'unknown_api_version',
  'invalid_request',
  'missing_token',
  'invalid_token',
  'token_expired',
  'token_revoked',
  'account_suspended',
  'https_required',
  'rate_limited',
  'internal_error',
  'overloaded',
  'database_unavailable',
]

/** Whether the change supports If-Match; a resource that cannot be read by itself has no ETag. */
function isConditional(route: RouteOptions): boolean {
  return ['PUT', 'PATCH', 'DELETE'].includes(String(route.method)) && !route.config?.withoutEtag
}

/** Every code that an operation can answer with, from its own list and from its shape. */
function faultsOf(route: RouteOptions, schema: FastifySchema): FaultCode[] {
  const codes: FaultCode[] = [...commonFaults, ...(route.config?.faults ?? [])]
  const query = (schema.querystring as TSchema | undefined)?.properties ?? {}
  if (route.config?.scope) codes.push('insufficient_scope')
  if (route.config?.accountWide && !schema.params) codes.push('token_limited_to_projects')
  if (schema.params) codes.push('not_found')
  codes.push('validation_failed')
  if (route.method !== 'GET') codes.push('invalid_json', 'body_too_large', 'unsupported_media_type')
  if ('cursor' in query) codes.push('invalid_cursor')
  if (route.method === 'POST')
    codes.push('invalid_idempotency_key', 'idempotency_in_progress', 'idempotency_key_reused')
  // What makes a resource of an account may exceed one of its quotas.
  if (route.method === 'POST' && route.config?.scope !== 'operator' && 201 in ((schema.response as object) ?? {}))
    codes.push('quota_exceeded')
  if (isConditional(route)) codes.push('precondition_failed')
  return [...new Set(codes)]
}

function problemResponses(codes: FaultCode[]) {
  const byStatus = Map.groupBy(codes, (code) => statuses[code])
  const entries = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => {
      const lines = codes.map((code) => `- \`${code}\`: ${faults[code].cause}`)
      const example = problemOf(new Fault(codes[0]!), 'https://api.example.com', 'req_7m2k9xq4tb')
      const content = { 'application/problem+json': { schema: { $ref: 'Problem#' }, example } }
      return [status, { description: lines.join('\n'), content }]
    })
  return Object.fromEntries(entries)
}

function headersOf(route: RouteOptions, schema: FastifySchema): TSchema | undefined {
  const text = (description: string) => ({ type: 'string', description })
  const properties: Record<string, object> = {}
  if (route.method === 'POST') {
    properties['Idempotency-Key'] = text('1 to 255 printable characters; the same key makes the request run once')
  }
  if (isConditional(route)) {
    properties['If-Match'] = text('ETag of the version to change; refused with 412 when it is not the current one')
  }
  if (route.method === 'GET' && schema.params) properties['If-None-Match'] = text('ETag of the copy you have')
  if (Object.keys(properties).length === 0) return undefined
  return { type: 'object', properties } as unknown as TSchema
}

type RequestBody = { required?: boolean; content: Record<string, { schema: { type?: string | string[] } }> }

type Document = {
  paths: Record<
    string,
    Record<string, { responses: Record<string, object>; requestBody?: RequestBody; servers?: object[] }>
  >
  components: { responses?: Record<string, object> }
}

// These four are the same for every operation, so they are declared once.
const sharedResponses: Record<string, string> = {
  401: 'Unauthorized',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'Unavailable',
}

const headerOf = (description: string, example: string) => ({ description, schema: { type: 'string' }, example })
const retryAfter = { 'Retry-After': headerOf('Seconds until a next try makes sense', '17') }

const sharedHeaders: Record<string, object> = {
  429: {
    ...retryAfter,
    'RateLimit-Policy': headerOf(
      'Requests in so many seconds, for the token and for all tokens of its account; with every answer to a valid token',
      '"token";q=600;w=60, "account";q=1800;w=60',
    ),
    RateLimit: headerOf(
      'Requests left and seconds until there are new ones, for both; with every answer to a valid token',
      '"token";r=0;t=17, "account";r=912;t=42',
    ),
  },
  503: retryAfter,
}

function finishDocument(document: Document): void {
  const shared: Record<string, object> = {}
  for (const { responses, requestBody, servers } of Object.values(document.paths).flatMap((path) =>
    Object.values(path),
  )) {
    // Operations outside /api have their own responses.
    if (servers) continue
    for (const [status, name] of Object.entries(sharedResponses)) {
      const headers = sharedHeaders[status]
      shared[name] ??= { ...responses[status]!, ...(headers && { headers }) }
      responses[status] = { $ref: `#/components/responses/${name}` }
    }
    // A body that may be null may be left out.
    const type = requestBody?.content['application/json']?.schema.type
    if (requestBody && type?.includes('null')) requestBody.required = false
  }
  document.components.responses = shared
}

/** Registers the generator; must come before the routes. */
export async function useOpenApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Berth', version: apiVersion, description },
      servers: [{ url: '/api', description: 'This server' }],
      tags,
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'API token: brt_… ' },
        },
      },
    },
    hideUntagged: true,
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, i) => String(json.$id ?? `def-${i}`) },
    transformObject: (made) => {
      const document = 'openapiObject' in made ? made.openapiObject : {}
      finishDocument(document as Document)
      return document as never
    },
    transform: ({ schema, url, route }) => {
      if (!schema || route.method === 'HEAD') return { schema: { ...schema, hide: true }, url }
      if (!url.startsWith('/api')) {
        const response = { ...(schema.response as object), ...problemResponses(route.config?.faults ?? []) }
        return {
          url,
          schema: { ...schema, servers: [{ url: '/', description: 'Outside /api' }], security: [], response },
        }
      }
      const scope = route.config?.scope
      const needs = scope ? `Needs the scope \`${scope}\`.` : 'Any valid token will do.'
      const headers = headersOf(route as RouteOptions, schema)
      return {
        url: url.replace(/^\/api/, ''),
        schema: {
          ...schema,
          description: `${schema.description} ${needs}`,
          security: [{ bearer: scope ? [scope] : [] }],
          ...(headers && { headers }),
          response: { ...(schema.response as object), ...problemResponses(faultsOf(route as RouteOptions, schema)) },
        },
      }
    },
  })
}

/** The document as it is committed: openapi.yaml. */
export function yamlOf(app: FastifyInstance): string {
  return app.swagger({ yaml: true })
}
