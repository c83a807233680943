import { expect, test } from 'vitest'
import { compileValidator } from '../../../src/api/http/validation.ts'
import { CreateDnsRecord, DnsBatch } from '../../../src/schemas/dns-records.ts'

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
