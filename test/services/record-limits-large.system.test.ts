// Imports of as many records as a zone may have.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi({ QUOTA_RECORDS_PER_ZONE: '10000' })
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(() => api.stop())

let zones = 0
async function newZone(): Promise<string> {
  const name = `limits${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

const address = (n: number) => `10.0.${n >> 8}.${n & 255}`
const put = (zone: string, body: string) =>
  api.call('PUT', `/dns/${zone}/zone`, { body, headers: { 'content-type': 'text/dns', 'if-match': '*' } })

test('an import of more than 10,000 records is refused, and works where the account may have more', async () => {
  const zone = await newZone()
  const lines = Array.from({ length: 10_001 }, (_, n) => `h${n} A ${address(n)}\n`)
  const { status, body } = await put(zone, lines.join(''))
  expect(status).toBe(403)
  expect(body).toMatchObject({
    limit: 'recordsPerZone',
    used: 10_001,
    max: 10_000,
    errors: [{ pointer: '#/lines/10001' }],
  })
  expect((await put(zone, lines.slice(1).join(''))).body).toMatchObject({ created: 10_000 })
  await api.db.account.update({ where: { id: api.accountId }, data: { limits: { recordsPerZone: 20_000 } } })
  expect((await put(zone, lines.join(''))).body).toMatchObject({ created: 1, unchanged: 10_000 })
})

test('an import takes what was exported of 20,000 records with long names', async () => {
  await api.db.account.update({ where: { id: api.accountId }, data: { limits: { recordsPerZone: 20_000 } } })
  const zone = await newZone()
  const lines = Array.from({ length: 20_000 }, (_, n) => `host-${n}.customers.of.ours A ${address(n)}\n`)
  expect((await put(zone, lines.join(''))).body).toMatchObject({ created: 20_000 })
  const { text } = await api.call('GET', `/dns/${zone}/zone`)
  expect(text.split('\n').length).toBeGreaterThan(20_000)
  expect((await put(zone, text)).body).toMatchObject({ created: 0, deleted: 0, unchanged: 20_000 })
})
