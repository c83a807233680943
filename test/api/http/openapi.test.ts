// The document that clients are generated from: it has a name for every body, and the tests hold all answers to it.
import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { pino } from 'pino'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { buildApp } from '../../../src/api/app.ts'
import type { Deps } from '../../../src/api/http/deps.ts'
import { loadConfig } from '../../../src/config.ts'
import { faults, fieldCodes } from '../../../src/platform/errors.ts'
import { eventTypes } from '../../../src/schemas/events.ts'
import type { Answer } from '../../helpers/api.ts'
import { checkMessage, createResponseChecker } from '../../helpers/responses.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document is looked at, whatever its shape.
type Node = any

// Only its routes are read, so it needs nothing else.
const app = await buildApp({ config: loadConfig({}), log: pino({ level: 'silent' }) } as Deps)
await app.ready()
afterAll(() => app.close())
const document: Node = (app as unknown as { swagger(): unknown }).swagger()

const operations: [name: string, operation: Node][] = Object.entries({
  ...document.paths,
  ...document.webhooks,
}).flatMap(([path, methods]) =>
  Object.entries(methods as object).map(([method, operation]): [string, Node] => [`${method} ${path}`, operation]),
)

/** Every schema within a schema, with where it stands. */
function inner(schema: Node, path: string): [path: string, schema: Node][] {
  if (schema === null || typeof schema !== 'object') return []
  const found = Object.entries(schema.properties ?? {}).map(
    ([key, value]) => [`${path}.${key}`, value] as [string, Node],
  )
  if (schema.items) found.push([`${path}[]`, schema.items])
  for (const one of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])]) found.push([`${path}|`, one])
  return found.flatMap(([where, one]) => [[where, one], ...inner(one, where)] as [string, Node][])
}

describe('openapi.yaml', () => {
  test('is served as the file and as JSON, which the process of the API does not write itself', async () => {
    const swagger = vi.spyOn(app as unknown as { swagger(): unknown }, 'swagger')
    expect((await app.inject('/openapi.yaml')).body).toBe(readFileSync('openapi.yaml', 'utf8'))
    expect((await app.inject('/openapi.json')).json()).toEqual(JSON.parse(JSON.stringify(document)))
    expect(swagger).not.toHaveBeenCalled()
    swagger.mockRestore()
  })

  test('names every body, and every object within one', () => {
    const bodies = operations.flatMap(([name, { requestBody, responses }]) =>
      [requestBody, ...Object.values<Node>(responses), ...Object.values<Node>(document.components.responses)]
        .flatMap((part) => Object.values<Node>(part?.content ?? {}))
        .map(({ schema }) => [name, schema] as [string, Node]),
    )
    expect(bodies.length).toBeGreaterThan(100)
    expect(bodies.filter(([, schema]) => !schema.$ref)).toEqual([])
    const within = Object.entries(document.components.schemas).flatMap(([name, schema]) => inner(schema, name))
    expect(within.filter(([, schema]) => schema.properties).map(([path]) => path)).toEqual([])
  })

  test('tells the shape of an event by its type, and has a webhook for it', () => {
    const { discriminator, oneOf } = document.components.schemas.Event
    expect(Object.keys(discriminator.mapping).sort()).toEqual([...eventTypes].sort())
    const sent = Object.values<Node>(document.webhooks).map(
      ({ post }) => post.requestBody.content['application/json'].schema,
    )
    expect(sent).toEqual(oneOf)
    for (const [type, place] of Object.entries<string>(discriminator.mapping)) {
      const { properties } = document.components.schemas[place.split('/').pop()!]
      expect(properties.type.enum, type).toContain(type)
    }
  })

  test('names a response after its status, and the form or the one operation that it is of', () => {
    const phrases = Object.values(STATUS_CODES).map((phrase) => phrase!.replaceAll(' ', ''))
    const own = operations.map(([, { operationId }]) => `${operationId[0].toUpperCase()}${operationId.slice(1)}`)
    for (const name of Object.keys(document.components.responses)) {
      const phrase = phrases.filter((one) => name.endsWith(one)).sort((a, b) => b.length - a.length)[0]
      const of = name.slice(0, name.length - phrase!.length)
      expect(own.includes(of) || /^(Scoped)?(Account)?(Limited)?$|^(List|Change|Post)$/.test(of), name).toBe(true)
    }
  })

  test('lists the codes of all problems', () => {
    expect(document.components.schemas.ProblemCode.enum).toEqual(Object.keys(faults))
    const { code } = document.components.schemas.FieldProblem.properties
    expect(code.$ref).toBe('#/components/schemas/FieldProblemCode')
    expect(document.components.schemas.FieldProblemCode.enum).toEqual([...fieldCodes])
  })

  test('has the headers that every request under /api may carry, and no others that the server does not read', () => {
    const { ApiVersion, RequestId } = document.components.parameters
    expect([ApiVersion.name, RequestId.name]).toEqual(['Api-Version', 'X-Request-Id'])
    for (const [name, { parameters = [], servers, operationId }] of operations) {
      const common = parameters.flatMap((one: Node) => one.$ref ?? []).map((at: string) => at.split('/').pop())
      const isOwn = !servers && operationId && !name.startsWith('post webhook')
      if (isOwn && document.paths[name.split(' ')[1]!]) expect(common, name).toEqual(['ApiVersion', 'RequestId'])
    }
  })

  test('says what a text must be, wherever its form is checked: a refusal tells it', () => {
    const schemas = [
      ...Object.entries(document.components.schemas),
      ...operations.flatMap(([name, { parameters = [] }]) =>
        parameters.map((one: Node) => [`${name} ${one.name}`, { properties: { it: { ...one, ...one.schema } } }]),
      ),
    ] as [string, Node][]
    const checked = schemas.flatMap(([name, schema]) => inner(schema, name)).filter(([, { pattern }]) => pattern)
    expect(checked.length).toBeGreaterThan(20)
    const mute = checked.filter(([, { description }]) => !/^must /.test(description ?? ''))
    expect(mute.map(([path]) => path)).toEqual([])
  })

  test('names the scope of every operation, one that the scheme explains', () => {
    for (const [name, { security, servers }] of operations) {
      if (servers || security.length === 0) continue
      for (const scope of security[0].bearer) {
        expect(document.components.securitySchemes.bearer.description, name).toContain(`\`${scope}\``)
      }
    }
  })
})

describe('an answer in a test', () => {
  const check = createResponseChecker(app)
  const page = { projects: [], hasMore: false, nextCursor: null, latestCursor: null }
  const limits = { 'ratelimit-policy': '"token";q=600;w=60', ratelimit: '"token";r=588;t=17' }
  const whole = { 'api-version': '2026-11-19', ...limits, 'content-type': 'application/json; charset=utf-8' }
  const headers = { 'x-request-id': 'req_1', ...whole }
  const answer: Answer = { status: 200, headers, body: page, text: '' }

  test('passes when the document has it', () => {
    check('GET', '/projects?limit=1', answer)
    check('HEAD', '/projects', { ...answer, body: undefined })
    check('GET', '/projects/site', { ...answer, status: 304, body: undefined, headers: { ...headers, etag: '"x"' } })
  })

  test('fails for a status, a header or a type that the document does not have, or a header that it promises', () => {
    const refused = (changed: Partial<Answer>, method = 'GET') =>
      expect(() => check(method, '/projects', { ...answer, ...changed }))
    refused({ status: 418 }).toThrow('does not declare this status')
    refused({ status: 304 }).toThrow('does not declare this status')
    refused({ headers: { ...headers, 'x-surprise': '1' } }).toThrow('does not declare the header x-surprise')
    refused({ headers: { ...headers, etag: '"x"' } }).toThrow('does not declare the header etag')
    refused({ headers: { ...headers, 'x-surprise': '1' } }, 'HEAD').toThrow('does not declare the header x-surprise')
    refused({ headers: whole }).toThrow('requires the header x-request-id')
    refused({ headers: { ...headers, ratelimit: undefined } }).toThrow('requires the header ratelimit')
    refused({ headers: { ...headers, 'content-type': 'text/html' } }).toThrow('does not declare text/html')
    refused({ body: { ...page, projects: [{}] } }).toThrow('does not match its schema')
    refused({ status: 201 }, 'POST').toThrow('requires the header location')
    expect(() => check('GET', '/nothing', answer)).toThrow('does not know this operation')
    expect(() => checkMessage(app, '/events', { id: 'evt_1', event: 'project.created', data: {} })).toThrow(
      'does not match',
    )
  })
})
