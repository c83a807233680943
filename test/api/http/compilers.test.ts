// Validators and serializers of routes: bodies in any order, and answers with nothing that their schema has not.
import { expect, test } from 'vitest'
import { buildSerializer, compiling } from '../../../src/api/http/requests/compilers.ts'
import { compileValidator } from '../../../src/api/http/requests/validation.ts'
import { schemas } from '../../../src/schemas/all.ts'
import { CreateDnsRecord, DnsBatch } from '../../../src/schemas/dns-records.ts'
import { startApi } from '../../helpers/api.ts'

const validatorOf = (schema: object) =>
  compileValidator({ schema, method: 'POST', url: '/', httpPart: 'body' }) as (body: unknown) => unknown

const record = { type: 'A', name: '@', value: '192.0.2.1' }

test('bodies are validated in whatever order they come first, also those that are part of others', () => {
  expect(validatorOf(DnsBatch)({ create: [record] })).toBe(true)
  expect(validatorOf(CreateDnsRecord)(record)).toBe(true)
  expect(validatorOf(DnsBatch)({ create: [{ ...record, ttl: 'soon' }] })).toMatchObject({
    error: { code: 'validation_failed' },
  })
})

type Schema = {
  $id?: string
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  patternProperties?: unknown
  items?: Schema
  minItems?: number
  format?: string
}

const texts: Record<string, string> = { 'date-time': '2026-11-14T09:32:00.000Z', uri: 'https://example.com' }

const components = new Map((schemas as Schema[]).map((schema) => [schema.$id!, schema]))

/** A value of the schema in which every object has a field too many, but for those that may have any. */
function sampleOf(schema: Schema): unknown {
  const { $ref, enum: values, anyOf, oneOf, properties = {}, items } = schema
  if ($ref) return sampleOf(components.get($ref.replace(/#.*$/, ''))!)
  if (values) return values[0]
  if (schema.const !== undefined) return schema.const
  const alternative = (anyOf ?? oneOf)?.[0]
  if (alternative) return sampleOf(alternative)
  switch ([schema.type].flat()[0]) {
    case 'object': {
      const fields = Object.entries(properties).map(([name, field]) => [name, sampleOf(field)])
      const isOpen = schema.additionalProperties || schema.patternProperties
      return Object.fromEntries(isOpen ? fields : [['leak', 'leaked'], ...fields.reverse()])
    }
    case 'array':
      return items ? Array.from({ length: schema.minItems || 1 }, () => sampleOf(items)) : []
    case 'integer':
    case 'number':
      return 1
    case 'boolean':
      return true
    default:
      return texts[schema.format ?? ''] ?? 'text'
  }
}

test.each([...components])('an answer of %s has no field that the schema has not, however deep', (name, schema) => {
  if (schema.type !== 'object') return
  const external = Object.fromEntries(components)
  const serialize = buildSerializer(external, {} as never)({ schema: { $ref: `${name}#` } } as never)
  const text = serialize(sampleOf(schema)) as string
  expect(text).not.toContain('leak')
})

test('every schema of every route compiles', async () => {
  compiling.eagerly = true
  try {
    const api = await startApi()
    await api.app.ready()
    await api.stop()
    const broken = () => compileValidator({ schema: { type: 'nothing' } as object, method: 'GET', url: '/' })
    expect(broken).toThrow('schema is invalid')
  } finally {
    compiling.eagerly = false
  }
})
