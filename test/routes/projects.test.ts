import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi()
})
afterAll(() => api.stop())

test('a project made with a name and a repository comes back with the planned fields first, in order', async () => {
  const { status, headers, body } = await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
  expect(status).toBe(201)
  expect(headers.location).toBe('/api/projects/site')
  expect(Object.keys(body).slice(0, 6)).toEqual(['id', 'name', 'framework', 'repo', 'region', 'productionUrl'])
  expect(body).toMatchObject({
    name: 'site',
    framework: 'other',
    repo: 'acme/site',
    productionUrl: 'http://site.localhost:8080',
  })
})
