// Generates openapi.yaml: operations come from the routes' schemas, common parts from here.
import swagger from '@fastify/swagger'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { stringify } from 'yaml'
import { byName } from '../../../schemas/all.ts'
import { scopeMeanings } from '../../../schemas/tokens.ts'
import { apiVersion, knownVersions } from '../responses/versions.ts'
import { nameEnums } from './openapi-enums.ts'
import {
  type Described,
  headers,
  isConditional,
  isSingle,
  type Response,
  type Responses,
  responsesOf,
  responsesOutside,
} from './openapi-responses.ts'
import { giveExamples, parameters, webhooks } from './openapi-webhooks.ts'

const guides = `

[Guides](/docs/guides/): [first deploy](/docs/guides/first-deploy), [authentication](/docs/guides/authentication),
[pagination](/docs/guides/pagination), [retries](/docs/guides/idempotency), [errors](/docs/guides/errors),
[deploy hooks and crons](/docs/guides/hooks),
[webhooks](/docs/guides/webhooks), [streams](/docs/guides/streams), [versions](/docs/guides/versions),
[limits](/docs/guides/limits). What is new: [changelog](/changelog).`

const description =
  `The management API of a hosting platform: deployments, domains with automatic SSL, DNS, projects and
support tickets. Every request carries \`Authorization: Bearer <token>\`. Errors are RFC 9457 problems whose \`code\` is
stable. Lists are paged by \`cursor\`. A POST may carry an \`Idempotency-Key\` and be sent again safely. Single resources
carry an \`ETag\`. \`RateLimit\` tells what is left to the token and to its account. Versions are dated; this is
${apiVersion}.`.replaceAll('\n', ' ') + guides

const scopesInWords = [
  'An API token. Each operation names the scope that the token needs:',
  '',
  ...Object.entries(scopeMeanings).map(([scope, meaning]) => `- \`${scope}\`: ${meaning}`),
].join('\n')

const tags = [
  { name: 'Projects', description: 'Projects, their settings, linked repositories and build-time variables' },
  { name: 'Deployments', description: 'Builds of a project: create, watch, cancel, promote' },
  { name: 'Domains', description: 'Custom domains: verification and certificates' },
  { name: 'DNS', description: 'Records of domains on the platform’s own nameservers' },
  { name: 'Tickets', description: 'Support tickets' },
  { name: 'Tokens', description: 'API tokens: make, narrow, rotate, revoke' },
  { name: 'Webhooks', description: 'Where events are sent' },
  { name: 'Events', description: 'Everything that happened, as a list and as a live stream' },
  { name: 'Members', description: 'People in the account: their roles and invitations' },
  { name: 'Account', description: 'The caller’s account and the platform' },
  { name: 'Operator', description: 'The platform’s own staff' },
]

/** Headers that every request under /api may carry, as components. */
const requestHeaders = {
  ApiVersion: {
    name: 'Api-Version',
    in: 'header',
    description: `Version of the API to answer by: ${knownVersions.join(' or ')}; left out: the newest`,
    schema: { type: 'string' },
    example: apiVersion,
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description:
      'Names the request in the answer and in the log of the server: up to 128 letters, digits, `.`, `_`, `-`',
    schema: { type: 'string' },
    example: 'req_7m2k9xq4tb',
  },
}

const requestHeaderReferences = Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }))

function headersOf(route: Described): TSchema | undefined {
  const text = (description: string) => ({ type: 'string', description })
  const properties: Record<string, object> = {}
  if (route.method === 'POST') {
    properties['Idempotency-Key'] = text('1 to 255 printable characters; the same key makes the request run once')
  }
  if (isConditional(route)) {
    properties['If-Match'] = text('ETag of the version to change; refused with 412 when it is not the current one')
  }
  if (isSingle(route)) properties['If-None-Match'] = text('ETag of the copy you have')
  if (route.config?.stream) properties['Last-Event-ID'] = text('Of a stream: id of the last message that you have')
  if (Object.keys(properties).length === 0) return undefined
  return { type: 'object', properties } as unknown as TSchema
}

type Schema = {
  type?: string | string[]
  description?: string
  default?: unknown
  properties?: Record<string, Schema>
  examples?: unknown[]
}
type RequestBody = { required?: boolean; content: Record<string, { schema: { $ref: string }; examples?: object }> }
type Operation = {
  operationId: string
  parameters?: object[]
  responses: Responses
  requestBody?: RequestBody
  servers?: object[]
}

type Document = {
  paths: Record<string, Record<string, Operation>>
  webhooks?: object
  components: {
    schemas: Record<string, Schema>
    responses?: Record<string, Response>
    headers?: object
    parameters?: object
  }
}

/** In words, because client generators require a field of a named schema that has a default. */
function describeDefault(field: Schema): void {
  if (field.default === undefined) return
  const text = `${field.default} if left out`
  field.description = field.description ? `${field.description}; ${text}` : text
  delete field.default
}

/** A nullable body is optional, since nobody sends null instead. */
function markOptional(requestBody: RequestBody, schemas: Record<string, Schema>): void {
  const schema = schemas[Object.values(requestBody.content)[0]!.schema.$ref.split('/').pop()!]!
  if (!Array.isArray(schema.type)) return
  requestBody.required = false
  schema.type = 'object'
}

function finishDocument(document: Document, routes: Map<string, Described>): void {
  const { components } = document
  for (const schema of Object.values(components.schemas)) {
    for (const field of Object.values(schema.properties ?? {})) describeDefault(field)
  }
  giveExamples(components.schemas)
  const shared: Record<string, Response> = {}
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    const route = routes.get(operation.operationId)!
    operation.responses = operation.servers
      ? responsesOutside(route, operation.responses)
      : responsesOf(route, operation.responses, shared)
    if (!operation.servers) operation.parameters = [...(operation.parameters ?? []), ...requestHeaderReferences]
    if (operation.requestBody) markOptional(operation.requestBody, components.schemas)
  }
  components.responses = Object.fromEntries(Object.entries(shared).sort(([a], [b]) => (a < b ? -1 : 1)))
  components.headers = headers
  components.parameters = { ...requestHeaders, ...parameters }
  document.webhooks = webhooks()
}

/** Must be registered before the routes. */
export async function useOpenApi(app: FastifyInstance): Promise<void> {
  const routes = new Map<string, Described>()
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Berth',
        version: apiVersion,
        description,
        license: { name: 'MIT', identifier: 'MIT' },
        contact: { name: 'The Berth authors' },
      },
      servers: [{ url: '/api', description: 'This server' }],
      tags,
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'brt_…', description: scopesInWords },
        },
      },
    },
    hideUntagged: true,
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, i) => String(json.$id ?? `def-${i}`) },
    transformObject: (made) => {
      const document = 'openapiObject' in made ? made.openapiObject : {}
      finishDocument(document as Document, routes)
      // Copied, because YAML would write shared objects as anchors.
      return JSON.parse(JSON.stringify(nameEnums(document as Document)))
    },
    transform: ({ schema, url, route }) => {
      if (!schema || schema.hide || route.method === 'HEAD') return { schema: { ...schema, hide: true }, url }
      const body = schema.body ? { body: byName(schema.body, true) } : {}
      if (schema.body && !(schema.body as { $id?: string }).$id) throw new Error(`the body of ${url} has no $id`)
      const described: Described = { method: route.method, config: route.config, schema }
      routes.set(schema.operationId!, described)
      if (!url.startsWith('/api')) {
        return {
          url,
          schema: { ...schema, ...body, servers: [{ url: '/', description: 'Outside /api' }], security: [] },
        }
      }
      const scope = route.config?.scope
      const needs = scope ? `Needs the scope \`${scope}\`.` : 'Any valid token will do.'
      const headers = headersOf(described)
      return {
        url: url.replace(/^\/api/, ''),
        schema: {
          ...schema,
          ...body,
          description: `${schema.description} ${needs}`,
          security: [{ bearer: scope ? [scope] : [] }],
          ...(headers && { headers }),
        },
      }
    },
  })
}

/** The document as committed in openapi.yaml. */
export function yamlOf(app: FastifyInstance): string {
  // YAML 1.1 readers, such as Python's, would parse an unquoted date as a date, and the version is one.
  return stringify(app.swagger(), { compat: 'yaml-1.1' })
}
