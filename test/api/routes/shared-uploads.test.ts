// The same content by several tokens: nobody gets what another one sent.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { sha256, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>
const narrow: Record<string, string> = {}

beforeAll(async () => {
  api = await startApi()
  uploads = uploadsOf(api)
  for (const name of ['one', 'two']) {
    await api.call('POST', '/projects', { body: { name, framework: 'static' } })
    const made = await api.call('POST', '/tokens', { body: { name, scopes: ['*'], projects: [name] } })
    narrow[name] = made.body.token
  }
})

afterAll(() => api.stop())

const deploy = (project: string, content: Buffer, token: string | undefined, size = content.length) => {
  const files = [{ path: 'a', sha256: sha256(content), size }]
  return api.call('POST', '/deployments', { body: { project, source: { files } }, ...(token && { token }) })
}

describe('a size that another project claims', () => {
  it('is not told to a token that is narrowed to others, and does not hold it up', async () => {
    const content = randomBytes(60)
    const lying = await deploy('one', content, narrow.one!, 61)
    expect(lying.status).toBe(201)
    const right = await deploy('two', content, narrow.two!)
    const sent = await uploads.put(content, { token: narrow.two! })
    expect(sent.status, sent.text).toBe(200)
    expect(await api.db.job.count({ where: { kind: 'build', key: right.body.id } })).toBe(1)
    // Whoever may see the deployment is told.
    expect((await uploads.put(content)).body.detail).toContain(lying.body.id)
  })
})

describe('content that another token has sent', () => {
  it('does not become the own by a request that is refused', async () => {
    const content = randomBytes(50)
    const name = sha256(content)
    expect((await uploads.put(content, { token: narrow.one! })).status).toBe(200)
    const before = await api.db.upload.findFirstOrThrow({ where: { sha256: name } })
    const refused = [
      await uploads.put(randomBytes(50), { name, token: narrow.two! }),
      await uploads.put(randomBytes(20), { name, token: narrow.two!, range: '5-24/50' }),
      await uploads.put(randomBytes(51), { name, token: narrow.two! }),
      await uploads.put(randomBytes(20), { name, token: narrow.two!, range: '0-19/90' }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([422, 409, 422, 422])
    const { tokenId, size, complete } = await api.db.upload.findFirstOrThrow({ where: { sha256: name } })
    expect({ tokenId, size, complete }).toEqual({ tokenId: before.tokenId, size: 50n, complete: true })
    expect((await api.call('GET', `/uploads/${name}`, { token: narrow.two! })).status).toBe(404)
    expect((await deploy('two', content, narrow.two)).body.uploads.missing).toEqual([name])
    // Who may not see it is not told its size.
    expect(JSON.stringify(refused.slice(2).map(({ body }) => [body.detail, body.errors]))).not.toMatch(/\b50\b/)
    expect((await uploads.put(randomBytes(51), { name })).body.detail).toContain('50 bytes')
    expect(await uploads.leftOnDisk()).toEqual([])
  })

  it('becomes the own by sending it, also in pieces', async () => {
    const content = randomBytes(60)
    const name = sha256(content)
    await uploads.put(content, { token: narrow.one! })
    const first = await uploads.put(content.subarray(0, 20), { name, token: narrow.two!, range: '0-19/60' })
    expect(first.body, first.text).toMatchObject({ offset: 20, size: 60, complete: false })
    const rest = await uploads.put(content.subarray(20), { name, token: narrow.two!, range: '20-59/60' })
    expect(rest.body).toMatchObject({ offset: 60, complete: true })
    expect((await deploy('two', content, narrow.two)).body.uploads.missing).toEqual([])
    expect(await uploads.leftOnDisk()).toEqual([])
  })
})
