// What an account may hold of uploads: the bound holds, whatever sizes are told and whatever comes at once.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'
import { archive, type Files, file, octets, random, sha256, tar, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>

const fresh = () => sha256(random())

beforeAll(async () => {
  api = await startApi()
  uploads = uploadsOf(api)
})

afterAll(() => api.stop())

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

describe('quotas', () => {
  it('bound files, bytes of a file, of a deployment, and of all that is held', async () => {
    const { token } = await uploads.limited({ sourceFiles: 2, sourceBytes: 100, uploadFileBytes: 60, uploadBytes: 150 })
    const refused = async (files: Files) => (await uploads.deploy(files, { token })).body
    expect(await refused({ a: '1', b: '2', c: '3' })).toMatchObject({
      code: 'quota_exceeded',
      limit: 'sourceFiles',
      max: 2,
    })
    expect(await refused({ a: random(60), b: random(60) })).toMatchObject({ limit: 'sourceBytes', used: 120 })
    expect(await refused({ a: random(70) })).toMatchObject({ limit: 'uploadFileBytes' })
    expect((await uploads.put(random(70), { token })).body).toMatchObject({ code: 'body_too_large' })
    const kept = { a: random(50), b: random(50) }
    expect((await uploads.deploy(kept, { token })).status).toBe(201)
    expect(await refused({ a: random(60) })).toMatchObject({ limit: 'uploadBytes', used: 100, max: 150 })
    // What was promised room comes in; what nobody waits for does not.
    expect((await uploads.put(random(60), { token })).body).toMatchObject({ limit: 'uploadBytes' })
    expect((await uploads.put(kept.a, { token })).status).toBe(200)
    expect((await uploads.deploy(kept, { token })).body.uploads.missing).toEqual([sha256(kept.b)])
  })

  it('count what a deployment waits for once, also when it comes in an archive', async () => {
    const { token } = await uploads.limited({ uploadBytes: 150 })
    const files = { a: random(50), b: random(50) }
    expect((await uploads.deploy(files, { token })).status).toBe(201)
    const send = (contents: string[]) =>
      api.call('POST', '/uploads', {
        body: archive(contents.map((content) => file(sha256(content), content))),
        headers: tar,
        token,
      })
    expect((await send([files.a, files.b, random(60)])).body).toMatchObject({ limit: 'uploadBytes', used: 100 })
    const sent = await send([files.a, files.b, random(40)])
    expect(sent.status, sent.text).toBe(200)
  })

  it('hold for sizes that lie', async () => {
    const { token } = await uploads.limited({ uploadBytes: 150 })
    const piece = (name: string, from: number, to: number, size: number) =>
      uploads.put(randomBytes(to - from), { name, token, range: `${from}-${to - 1}/${size}` })
    // The first piece says that little comes, the next one that it is much.
    const [first, second] = [fresh(), fresh()]
    for (const name of [first, second]) expect((await piece(name, 0, 1, 2)).status).toBe(200)
    expect((await piece(first, 1, 90, 100)).status).toBe(200)
    expect((await piece(second, 1, 90, 100)).body).toMatchObject({ limit: 'uploadBytes', used: 100 })
    // Saying less later does not give the room back.
    expect((await piece(first, 0, 1, 2)).status).toBe(200)
    expect((await piece(second, 1, 90, 100)).body).toMatchObject({ limit: 'uploadBytes', used: 100 })
    // A deployment that is over had been promised room for one byte.
    const content = random(60)
    const files = [{ path: 'a', sha256: sha256(content), size: 1 }]
    const made = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } }, token })
    await api.call('POST', `/deployments/${made.body.id}/cancel`, { token })
    expect((await uploads.put(content, { token })).body).toMatchObject({ limit: 'uploadBytes' })
    // What is here already has a size.
    const small = random(10)
    expect((await uploads.put(small, { token })).status).toBe(200)
    expect((await piece(sha256(small), 0, 5, 30)).body.errors).toMatchObject([{ in: 'header', code: 'wrong' }])
  })
})

describe('the quota holds', () => {
  const limited = async () => {
    const { accountId, token } = await uploads.limited({ uploadBytes: 1_000 })
    const counted = async () =>
      (await api.db.upload.findMany({ where: { accountId } })).reduce((sum, { size }) => sum + Number(size), 0)
    const here = async () => (await uploads.leftOnDisk()).filter((name) => name.startsWith(accountId))
    return { accountId, token, counted, here }
  }

  it('while a piece comes and another request for the same content is refused', async () => {
    const { token, counted, here } = await limited()
    const name = fresh()
    const slow = slowly(name, token, '0-798/900', [randomBytes(700), randomBytes(99)])
    await until(async () => (await here()).length > 0)
    expect((await uploads.put(randomBytes(2), { name, token, range: '5-6/900' })).status).toBe(409)
    expect((await uploads.put(randomBytes(900), { name, token })).status).toBe(422)
    expect(await counted()).toBe(900)
    expect((await uploads.put(randomBytes(200), { token })).body).toMatchObject({ limit: 'uploadBytes', used: 900 })
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
    expect((await uploads.put(randomBytes(500), { token })).status).toBe(200)
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
      expect((await uploads.put(randomBytes(700), { name, token, range: '0-699/800' })).status).toBe(200)
      if (send === 'alone') expect((await uploads.put(content, { token })).status).toBe(200)
      else {
        const body = archive([file(name, content)])
        const sent = await api.call('POST', '/uploads', { body, headers: tar, token })
        expect(sent.status, sent.text).toBe(200)
      }
      expect(await here(), send).toEqual([])
    }
    expect(await counted()).toBe(20)
  })
})
