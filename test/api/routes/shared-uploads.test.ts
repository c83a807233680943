// The same content by several requests and tokens at once: nobody gets what another one sent, and all of it is counted.
import { createHash, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tarEnd, tarHeader, tarPadding } from '../../../src/platform/tar.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
const narrow: Record<string, string> = {}

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
const octets = { 'content-type': 'application/octet-stream' }
const fresh = () => sha256(randomBytes(20))

beforeAll(async () => {
  api = await startApi()
  for (const name of ['one', 'two']) {
    await api.call('POST', '/projects', { body: { name, framework: 'static' } })
    const made = await api.call('POST', '/tokens', { body: { name, scopes: ['*'], projects: [name] } })
    narrow[name] = made.body.token
  }
})

afterAll(() => api.stop())

type Sent = { name?: string; token?: string | undefined; range?: string }

const put = (body: Buffer, { name = sha256(body), token, range }: Sent = {}) => {
  const headers = { ...octets, ...(range && { 'content-range': `bytes ${range}` }) }
  return api.call('PUT', `/uploads/${name}`, { body, headers, ...(token && { token }) })
}

const deploy = (project: string, content: Buffer, token: string | undefined, size = content.length) => {
  const files = [{ path: 'a', sha256: sha256(content), size }]
  return api.call('POST', '/deployments', { body: { project, source: { files } }, ...(token && { token }) })
}

const leftOnDisk = () => readdir(join(api.config.dataDir, 'uploads')).catch(() => [])

/** A request whose body comes when it is told to. */
function slowly(name: string, token: string, range: string, chunks: Buffer[]) {
  const go = Promise.withResolvers<void>()
  async function* body() {
    yield chunks[0]!
    await go.promise
    yield* chunks.slice(1)
  }
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  const headers = {
    ...{ authorization: `Bearer ${token}`, 'content-length': String(length), 'content-range': `bytes ${range}` },
    ...octets,
  }
  const url = `/api/uploads/${name}`
  const answer = api.app
    .inject({ method: 'PUT', url, headers, payload: Readable.from(body()) })
    .then((answer) => answer)
  return { answer, go: () => go.resolve() }
}

describe('a size that another project claims', () => {
  it('is not told to a token that is narrowed to others, and does not hold it up', async () => {
    const content = randomBytes(60)
    const lying = await deploy('one', content, narrow.one!, 61)
    expect(lying.status).toBe(201)
    const right = await deploy('two', content, narrow.two!)
    const sent = await put(content, { token: narrow.two! })
    expect(sent.status, sent.text).toBe(200)
    expect(await api.db.job.count({ where: { kind: 'build', key: right.body.id } })).toBe(1)
    // Whoever may see the deployment is told.
    expect((await put(content)).body.detail).toContain(lying.body.id)
  })
})

describe('content that another token has sent', () => {
  it('does not become the own by a request that is refused', async () => {
    const content = randomBytes(50)
    const name = sha256(content)
    expect((await put(content, { token: narrow.one! })).status).toBe(200)
    const before = await api.db.upload.findFirstOrThrow({ where: { sha256: name } })
    const refused = [
      await put(randomBytes(50), { name, token: narrow.two! }),
      await put(randomBytes(20), { name, token: narrow.two!, range: '5-24/50' }),
      await put(randomBytes(51), { name, token: narrow.two! }),
      await put(randomBytes(20), { name, token: narrow.two!, range: '0-19/90' }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([422, 409, 422, 422])
    const { tokenId, size, complete } = await api.db.upload.findFirstOrThrow({ where: { sha256: name } })
    expect({ tokenId, size, complete }).toEqual({ tokenId: before.tokenId, size: 50n, complete: true })
    expect((await api.call('GET', `/uploads/${name}`, { token: narrow.two! })).status).toBe(404)
    expect((await deploy('two', content, narrow.two)).body.uploads.missing).toEqual([name])
    // Who may not see it is not told its size.
    expect(JSON.stringify(refused.slice(2).map(({ body }) => [body.detail, body.errors]))).not.toMatch(/\b50\b/)
    expect((await put(randomBytes(51), { name })).body.detail).toContain('50 bytes')
    expect(await leftOnDisk()).toEqual([])
  })

  it('becomes the own by sending it, also in pieces', async () => {
    const content = randomBytes(60)
    const name = sha256(content)
    await put(content, { token: narrow.one! })
    const first = await put(content.subarray(0, 20), { name, token: narrow.two!, range: '0-19/60' })
    expect(first.body, first.text).toMatchObject({ offset: 20, size: 60, complete: false })
    const rest = await put(content.subarray(20), { name, token: narrow.two!, range: '20-59/60' })
    expect(rest.body).toMatchObject({ offset: 60, complete: true })
    expect((await deploy('two', content, narrow.two)).body.uploads.missing).toEqual([])
    expect(await leftOnDisk()).toEqual([])
  })
})

describe('the quota holds', () => {
  const limited = async () => {
    const { accountId, token } = await api.newAccount()
    await api.db.account.update({ where: { id: accountId }, data: { limits: { uploadBytes: 1_000 } } })
    const counted = async () =>
      (await api.db.upload.findMany({ where: { accountId } })).reduce((sum, { size }) => sum + Number(size), 0)
    const here = async () => (await leftOnDisk()).filter((name) => name.startsWith(accountId))
    return { accountId, token, counted, here }
  }

  it('while a piece comes and another request for the same content is refused', async () => {
    const { token, counted, here } = await limited()
    const name = fresh()
    const slow = slowly(name, token, '0-798/900', [randomBytes(700), randomBytes(99)])
    await until(async () => (await here()).length > 0)
    expect((await put(randomBytes(2), { name, token, range: '5-6/900' })).status).toBe(409)
    expect((await put(randomBytes(900), { name, token })).status).toBe(422)
    expect(await counted()).toBe(900)
    expect((await put(randomBytes(200), { token })).body).toMatchObject({ limit: 'uploadBytes', used: 900 })
    slow.go()
    expect((await slow.answer).json()).toMatchObject({ offset: 799 })
    expect(await counted()).toBe(900)
  })

  it('for a piece whose room another one has taken meanwhile', async () => {
    const { accountId, token, counted, here } = await limited()
    const name = fresh()
    const slow = slowly(name, token, '0-798/900', [randomBytes(700), randomBytes(99)])
    await until(async () => (await here()).length > 0)
    // As another server could.
    await api.db.upload.deleteMany({ where: { accountId } })
    expect((await put(randomBytes(500), { token })).status).toBe(200)
    slow.go()
    expect((await slow.answer).json()).toMatchObject({ code: 'quota_exceeded', limit: 'uploadBytes', used: 500 })
    expect(await counted()).toBe(500)
    expect(await here()).toEqual([])
  })

  it('for pieces of content that comes whole, and is smaller than they said', async () => {
    const { token, counted, here } = await limited()
    for (const send of ['alone', 'in an archive'] as const) {
      const content = randomBytes(10)
      const name = sha256(content)
      expect((await put(randomBytes(700), { name, token, range: '0-699/800' })).status).toBe(200)
      if (send === 'alone') expect((await put(content, { token })).status).toBe(200)
      else {
        const entry = tarHeader({ kind: 'file', path: name, mode: 0o644, size: 10 })
        const body = Buffer.concat([entry, content, tarPadding(10), tarEnd])
        const headers = { 'content-type': 'application/x-tar' }
        const sent = await api.call('POST', '/uploads', { body, headers, token })
        expect(sent.status, sent.text).toBe(200)
      }
      expect(await here(), send).toEqual([])
    }
    expect(await counted()).toBe(20)
  })
})
