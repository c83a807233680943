// Headers that steer an operation: keys, conditions, versions, credentials and streams, all malformed.
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { Operation } from '../access/operations.ts'
import { exchange } from '../access/raw.ts'
import { wireOf } from '../access/world.ts'
import { startHarness } from './harness.ts'

const { api, operations, freshForAll, refused, expectUntouched } = await startHarness()
afterAll(() => api.stop())
afterEach(expectUntouched)
await api.listen()
const { port } = api.app.server.address() as AddressInfo

const targets = await freshForAll(operations)

function ask(operation: Operation, headers: Record<string, string>) {
  const { path, owner, body } = targets.get(operation)!
  const wire = wireOf(operation, body)
  return refused({
    ...wire,
    method: operation.method,
    path,
    token: owner.token,
    headers: { ...wire.headers, ...headers },
  })
}

describe.each(operations)('$name', (operation) => {
  test('refuses a version that does not exist with 400', async () => {
    const versions = [
      '2026-11-15',
      '1',
      'v1',
      '',
      ' ',
      '2026-11-14 ',
      '2026-11-14, 2026-11-14',
      '\xff',
      'a'.repeat(5000),
    ]
    for (const version of versions) {
      const answer = await ask(operation, { 'api-version': version })
      expect(answer, version).toMatchObject({ status: 400, body: { code: 'unknown_api_version' } })
      expect(answer.text.length).toBeLessThan(1000)
    }
  })

  test('refuses every credential but a whole bearer token with 401', async () => {
    const { token } = targets.get(operation)!.owner
    const forms = [
      `bearer`,
      `Bearer${token}`,
      `Bearer=${token}`,
      `Bearer "${token}"`,
      `Token ${token}`,
      `Bearer ${token},`,
    ]
    const more = [
      `Bearer ${token} x`,
      ` Bearer`,
      `Bearer ${token.toLowerCase()}`,
      `Bearer ${'a'.repeat(5000)}`,
      'Bearer \xff',
    ]
    const words = ['Basic Og==', 'Bearer null', 'Bearer undefined', 'Bearer __proto__']
    for (const authorization of [...forms, ...more, ...words]) {
      expect((await ask(operation, { authorization })).status, authorization).toBe(401)
    }
  })

  if (operation.headers.includes('idempotency-key')) {
    test('refuses a malformed Idempotency-Key with 400', async () => {
      for (const key of ['', ' ', ' a', 'a ', 'é', 'a\tb', '\x7f', '\xff', 'a'.repeat(256), 'a'.repeat(5000)]) {
        const answer = await ask(operation, { 'idempotency-key': key })
        expect(answer, JSON.stringify(key)).toMatchObject({ status: 400, body: { code: 'invalid_idempotency_key' } })
      }
    })
  }

  if (operation.headers.includes('if-match')) {
    test('refuses conditions that name no current version with 412', async () => {
      for (const condition of [
        '',
        'x',
        '"x"',
        'W/"x"',
        '"',
        '""',
        ',',
        '"x", "y"',
        '\xff',
        'a'.repeat(5000),
        '"*"',
        '**',
      ]) {
        const answer = await ask(operation, { 'if-match': condition })
        expect(answer, condition).toMatchObject({ status: 412, body: { code: 'precondition_failed' } })
      }
    })
  }
})

test('a request line or a header that breaks HTTP is refused, and the server lives on', async () => {
  const { token } = targets.get(operations[0]!)!.owner
  const good = `host: x\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n`
  const post = `POST /api/projects HTTP/1.1\r\n${good}content-type: application/json\r\n`
  const broken = [
    ...[
      '\0\r\n\r\n',
      'GET\r\n\r\n',
      'GET /api/projects\r\n\r\n',
      'GET /api/projects HTTP/9.9\r\n\r\n',
      'BREW /api HTTP/1.1\r\n\r\n',
    ],
    `GET /api/projects HTTP/1.1\r\n${good}x: a\0b\r\n\r\n`,
    `GET /api/projects HTTP/1.1\r\n${good}x\0y: 1\r\n\r\n`,
    `GET /api/projects HTTP/1.1\r\n${good}x: ${'a'.repeat(20_000)}\r\n\r\n`,
    `GET /api/${'a'.repeat(20_000)} HTTP/1.1\r\n${good}\r\n`,
    `GET /api/projects\0 HTTP/1.1\r\n${good}\r\n`,
    `${post}content-length: -1\r\n\r\n`,
    `${post}content-length: 1e9\r\n\r\n`,
    `${post}content-length: 99999999999\r\n\r\n{}`,
    `${post}content-length: 5\r\ncontent-length: 6\r\n\r\n{}`,
    `${post}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${post}transfer-encoding: chunked\r\n\r\nzz\r\n\r\n`,
    `${post}transfer-encoding: chunked\r\n\r\n${'10000\r\n'}${'a'.repeat(65_536)}\r\n1\r\na\r\n0\r\n\r\n`,
    `${post}content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}`,
  ]
  for (const bytes of broken) {
    const { status } = await exchange(port, bytes)
    expect(status === 0 || (status >= 400 && status < 500), `${status} to ${bytes.slice(0, 200)}`).toBe(true)
  }
  expect((await exchange(port, `GET /api/projects HTTP/1.1\r\n${good}\r\n`)).status).toBe(200)
})
