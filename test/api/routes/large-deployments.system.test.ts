// A deployment without git of as many files as large sites have.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { random, sha256, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>

beforeAll(async () => {
  api = await sharedApi()
  uploads = uploadsOf(api)
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
})
afterAll(() => api.stop())

it('a deployment without git takes 20,000 files', async () => {
  const content = random()
  const files = Array.from({ length: 20_000 }, (_, n) => ({
    path: `d${n % 100}/${n}`,
    sha256: sha256(content),
    size: 40,
  }))
  const made = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
  expect(made.status).toBe(201)
  await uploads.put(content)
  expect(await uploads.jobOf(made.body.id)).toBe(1)
})
