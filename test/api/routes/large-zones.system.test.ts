// Zones of as many records as an account may have, imported and exported at once.
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(() => api.stop())

let zones = 0
async function newZone(): Promise<string> {
  const name = `zone${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

const put = (zone: string, body: string) =>
  api.call('PUT', `/dns/${zone}/zone`, { body, headers: { 'content-type': 'text/dns', 'if-match': '*' } })

test('an export is not longer than its records', async () => {
  const zone = await newZone()
  const lines = Array.from({ length: 9_999 }, (_, n) => `h${n} 300 A 192.0.2.1`)
  await put(zone, [...lines, `${'long-name-'.repeat(6)} 300 A 192.0.2.1`].join('\n'))
  const { text } = await api.call('GET', `/dns/${zone}/zone`)
  expect(text.length).toBeLessThan(lines.join('\n').length + 10_000 * ' IN'.length + 1_000)
})

test('10,000 records are imported by a few statements, and again without a change', async () => {
  const zone = await newZone()
  const lines = Array.from({ length: 10_000 }, (_, n) => `h${n} 300 A 192.0.${n >> 8}.${n & 255}`)
  const text = lines.join('\n')
  const statements = vi.spyOn(pg.Client.prototype, 'query')
  const { body } = await put(zone, text)
  expect(body).toMatchObject({ created: 10_000, truncated: true, serial: 2 })
  expect(statements.mock.calls.length).toBeLessThan(30)
  statements.mockRestore()
  expect((await put(zone, text)).body).toMatchObject({ unchanged: 10_000, serial: 2 })
  expect((await put(zone, lines.slice(0, 10).join('\n'))).body).toMatchObject({ deleted: 9_990, serial: 3 })
})
