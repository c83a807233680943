// Whole bodies that are no body: broken JSON, wrong encodings, wrong types, nests and floods. All refused, none stored.
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { Operation } from '../access/operations.ts'
import { startHarness } from './harness.ts'
import { dates } from './values.ts'

const { api, operations, fresh, freshForAll, attack, refused, expectUntouched } = await startHarness()
afterAll(() => api.stop())
afterEach(expectUntouched)

const targets = await freshForAll(operations)

async function post(operation: Operation, payload: string | Buffer, contentType: string | null = 'application/json') {
  const { path, owner } = targets.get(operation)!
  const headers: Record<string, string> = contentType === null ? {} : { 'content-type': contentType }
  return refused({ method: operation.method, path, token: owner.token, headers, payload })
}

const kib = 1024
const levels = 10_000

/** What no parser of JSON may take. */
function brokenJson(valid: string): (string | Buffer)[] {
  const bytes = Buffer.from(valid)
  return [
    ...[
      '{',
      '[',
      '"',
      '{"a"',
      '{"a":}',
      '{,}',
      '{"a":1,}',
      '[1,]',
      "{'a':1}",
      '{a:1}',
      'NaN',
      'Infinity',
      'undefined',
      '0x1',
    ],
    ...[
      '01',
      '1.',
      '.5',
      '+1',
      '"\n"',
      '"\\x"',
      '"\\u12"',
      '/**/{}',
      '{}//',
      `${valid}x`,
      `${valid}${valid}`,
      `\0${valid}`,
      ' ',
    ],
    valid.slice(0, -1),
    valid.slice(0, valid.length / 2),
    '['.repeat(levels),
    '{"a":'.repeat(levels),
    ...[[0xff], [0xc3, 0x28], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]].map((bad) =>
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bad), Buffer.from('"}')]),
    ),
    bytes.subarray(0, bytes.length - 1),
    Buffer.from(`\ufeff${valid}`, 'utf16le'),
    Buffer.from(valid, 'utf16le'),
  ]
}

/** JSON, but not the object that is asked for. */
const notAnObject = [
  ...['[]', '[{}]', '""', '"x"', '0', '1e309', '-0', 'true', 'false', '"{}"'],
  `${'['.repeat(levels)}${']'.repeat(levels)}`,
]

/** Objects that hold what no operation asks for. */
const strangers = [
  ...['{"__proto__":{}}', '{"__proto__":null}', '{"constructor":{"prototype":{"x":1}}}', '{"prototype":1}', '{"":1}'],
  ...['{"\\u0000":1}', '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"\\udfff":1}', '{"hasOwnProperty":1}', '{"$ref":"#"}'],
  `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
  `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`,
  `{${Array.from({ length: 4_000 }, (_, n) => `"k${n}":1`).join(',')}}`,
  `{"${'k'.repeat(60 * kib)}":1}`,
  `{"a":"${'\\u0000'.repeat(10_000)}"}`,
  `{"a":[${'"\\u0000",'.repeat(5_000)}0]}`,
]

const nest = `${'['.repeat(levels)}${']'.repeat(levels)}`
const nestOfObjects = `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

/** JSON of an object with one field written by hand. */
function withField(others: Record<string, unknown>, name: string, value: string): string {
  const rest = JSON.stringify({ ...others, [name]: undefined }).slice(1)
  const payload = `{"${name}":${value}${rest === '}' ? '' : ','}${rest}`
  return Buffer.byteLength(payload) <= 64 * kib ? payload : `{"${name}":${value}}`
}

function listsOf({ body }: Operation): string[] {
  return Object.entries(body!.schema.properties as Record<string, { type: string }>)
    .filter(([, { type }]) => [type].flat().includes('array'))
    .map(([name]) => name)
}

function datesOf({ body }: Operation): string[] {
  return Object.entries(body!.schema.properties as Record<string, { format?: string }>)
    .filter(([, { format }]) => format === 'date-time')
    .map(([name]) => name)
}

const withJson = operations.filter(({ body }) => body?.type === 'application/json')

describe.each(withJson)('$name', (operation) => {
  const valid = JSON.stringify(targets.get(operation)!.body)
  const fields = JSON.parse(valid) as Record<string, unknown>

  test('refuses broken JSON and broken UTF-8 with 400', async () => {
    for (const payload of brokenJson(valid)) {
      const answer = await post(operation, payload)
      expect(answer, String(payload).slice(0, 80)).toMatchObject({ status: 400, body: { code: 'invalid_json' } })
      expect(answer.text.length).toBeLessThan(2 * kib)
    }
  })

  test('refuses JSON that is no object with 422', async () => {
    for (const payload of notAnObject) {
      const answer = await post(operation, payload)
      expect(answer, payload.slice(0, 80)).toMatchObject({
        status: 422,
        body: { errors: [{ in: 'body', pointer: '#' }] },
      })
    }
  })

  test('refuses unknown fields, prototypes, nests and text that cannot be stored with 422, in an answer of bounded size', async () => {
    for (const payload of strangers) {
      const answer = await post(operation, payload)
      expect(answer.status, payload.slice(0, 80)).toBe(422)
      expect(answer.text.length, payload.slice(0, 80)).toBeLessThan(1024 * kib)
    }
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false)
  })

  test('refuses 10,000 levels of nesting in each of its fields', async () => {
    const names = Object.keys(operation.body!.schema.properties)
    const nested = names.flatMap((name) => [nest, nestOfObjects, `[${nest},${nest}]`].map((value) => ({ name, value })))
    for (const { name, value } of nested) {
      expect((await post(operation, withField(fields, name, value))).status, `${name} ${value.slice(0, 9)}`).toBe(422)
    }
  })

  for (const name of datesOf(operation)) {
    test(`takes or refuses a ${name} that only some parsers take for a date`, async () => {
      const { path } = targets.get(operation)!
      for (const date of dates) {
        const { owner } = await fresh(operation)
        const payload = JSON.stringify({ name: 'odd', [name]: date })
        const headers = { 'content-type': 'application/json' }
        const { status, text } = await attack({ method: operation.method, path, token: owner.token, headers, payload })
        expect([201, 422], `${JSON.stringify(date)}: ${text}`).toContain(status)
      }
    })
  }

  for (const name of listsOf(operation)) {
    test(`refuses a flood of ${name} with 422, in an answer not much larger than the question`, async () => {
      for (const item of ['0', '""', '{}', 'null', '[]']) {
        const value = `[${`${item},`.repeat((60 * kib) / (item.length + 1))}${item}]`
        const answer = await post(operation, withField({}, name, value))
        expect(answer.status).toBe(422)
        expect(answer.text.length, `${name} of ${item}`).toBeLessThan(256 * kib)
      }
    })
  }
})

describe.each(operations.filter(({ method }) => method !== 'GET'))('$name', (operation) => {
  const { body } = targets.get(operation)!
  const valid = typeof body === 'string' ? body : JSON.stringify(body ?? {})
  const isText = operation.body && operation.body.type !== 'application/json'
  // A list of files is long.
  const limit = isText ? 16 * 1024 * kib : operation.id === 'createDeployment' ? 8 * 1024 * kib : 64 * kib

  test('refuses a body of another type with 415', async () => {
    const types = [
      null,
      'text/plain',
      'text/html',
      'application/xml',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
    ]
    const broken = [
      'application/json5',
      'application/jsonx',
      'text/json',
      'application/*',
      'json',
      '/',
      'a b',
      '\xff',
      ',',
    ]
    const all = [...types, ...broken, 'application/vnd.api+json', 'text/dns+xml']
    const taken = operation.body?.types ?? ['application/json']
    const refusedTypes = all.filter((type) => type === null || !taken.includes(type))
    for (const type of refusedTypes) {
      const answer = await post(operation, valid === '' ? 'x' : valid, type)
      expect(answer, String(type)).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } })
    }
  })

  // What an uploaded file or an archive may have is a quota.
  const isBounded = !['putUpload', 'createDeploymentFromArchive'].includes(operation.id)
  test.runIf(isBounded)('refuses a body that is too large with 413, before it is read', async () => {
    for (const size of [limit + 1, limit * 3]) {
      const type = operation.body?.type ?? 'application/json'
      const answer = await post(
        operation,
        type === 'application/json' ? `"${'a'.repeat(size)}"` : ';'.repeat(size),
        type,
      )
      expect(answer).toMatchObject({ status: 413, body: { code: 'body_too_large' } })
    }
  })

  if (!operation.body) {
    test('refuses a body, because it takes none', async () => {
      for (const payload of ['{"a":1}', '[]', '[1]', '"x"', '1', 'false', '{"__proto__":1}']) {
        expect((await post(operation, payload)).status, payload).toBe(422)
      }
    })
  }
})

test('a zone file as large as allowed is imported or refused, and replaced as well', {
  timeout: 120_000,
}, async () => {
  const { path, owner } = await fresh(operations.find(({ id }) => id === 'importZone')!)
  const headers = { 'content-type': 'text/dns' }
  for (const name of ['a', 'b']) {
    const lines = Array.from({ length: 60_000 }, (_, n) => `${name} A 10.${n >> 16}.${(n >> 8) & 255}.${n & 255}\n`)
    const answer = await attack({ method: 'PUT', path, token: owner.token, headers, payload: lines.join('') })
    expect([200, 403, 422], answer.text.slice(0, 300)).toContain(answer.status)
  }
})
