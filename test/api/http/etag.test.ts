// Single resources: their answers have what their schema has, and nothing else that a row may hold.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
  await api.call('POST', '/domains', { body: { project: 'site', name: 'shown.io' } })
})
afterAll(() => api.stop())

test('a field of a stored document that the schema has not is never answered, and the fields come in its order', async () => {
  const certificate = { nextAttemptAt: null, lastError: null, sans: ['shown.io'], notAfter: null, notBefore: null }
  await api.db.domain.updateMany({
    where: { name: 'shown.io' },
    data: { certificate: { privateKey: 'leaked', ...certificate, serial: 'b', issuer: 'a' } },
  })
  const read = await api.call('GET', '/domains/shown.io')
  const changed = await api.call('PATCH', '/domains/shown.io', { body: { project: 'site' } })
  for (const answer of [read, changed]) {
    expect(answer.text).not.toContain('leaked')
    expect(Object.keys(answer.body.certificate).join()).toBe(
      'issuer,serial,notBefore,notAfter,sans,lastError,nextAttemptAt',
    )
  }
  // What is compared is the same for a reader and a writer.
  const guarded = { headers: { 'if-match': read.headers.etag! } }
  expect(read.headers.etag).toBe(changed.headers.etag)
  expect((await api.call('DELETE', '/domains/shown.io', guarded)).status).toBe(204)
})
