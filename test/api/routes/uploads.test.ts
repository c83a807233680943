// Uploads, whole and in pieces: what is taken, what is refused, and that refusals leave nothing.
import { randomBytes } from 'node:crypto'
import { copyFile, readdir, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createReceiver } from '../../../src/services/uploads/receiver.ts'
import { deleteOldUploads } from '../../../src/services/uploads/uploads.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { archive, file, random, sha256, tar, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>

beforeAll(async () => {
  api = await startApi()
  uploads = uploadsOf(api)
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
})

afterAll(() => api.stop())

describe('PUT /uploads/{sha256}', () => {
  it('refuses content that is not what the path says, and keeps nothing of it', async () => {
    for (const size of [100, 600_000]) {
      const content = random(size)
      const name = sha256(random())
      const answer = await uploads.put(content, { name })
      expect(answer.body).toMatchObject({ status: 422, code: 'validation_failed' })
      expect(await uploads.isStored(sha256(content))).toBe(false)
      expect((await api.call('GET', `/uploads/${name}`)).status).toBe(404)
    }
    expect(await uploads.leftOnDisk()).toEqual([])
    expect(await api.db.upload.count({ where: { complete: false } })).toBe(0)
  })

  it('refuses a size that differs from that of the list', async () => {
    const content = random()
    const files = [{ path: 'a', sha256: sha256(content), size: 41 }]
    const made = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    expect(made.status).toBe(201)
    expect((await uploads.put(content)).status).toBe(422)
    expect(await uploads.isStored(sha256(content))).toBe(false)
    await api.call('POST', `/deployments/${made.body.id}/cancel`)
    // What is stored already has a size, which the list cannot change.
    await uploads.put(content)
    const again = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    expect(again.body.errors).toMatchObject([{ pointer: '#/source/files/0/size', code: 'wrong' }])
  })

  it('takes pieces, and tells where the next one begins', async () => {
    const content = randomBytes(700_000)
    const name = sha256(content)
    const { body } = await uploads.deploy({ 'a.bin': content })
    const piece = (from: number, to: number, total = content.length) =>
      uploads.put(content.subarray(from, to), { name, range: `${from}-${to - 1}/${total}` })
    expect((await piece(0, 300_000)).body).toMatchObject({ offset: 300_000, complete: false, size: 700_000 })
    const head = await api.call('HEAD', `/uploads/${name}`)
    expect(head.headers['upload-offset']).toBe('300000')
    expect((await piece(200_000, 700_000)).body).toMatchObject({ code: 'upload_offset_wrong' })
    expect((await piece(300_000, 500_000)).body).toMatchObject({ offset: 500_000 })
    expect((await piece(500_000, 700_000)).body).toMatchObject({ offset: 700_000, complete: true })
    expect(await uploads.isStored(name)).toBe(true)
    expect(await uploads.jobOf(body.id)).toBe(1)
    expect(await uploads.leftOnDisk()).toEqual([])
    const bad = await uploads.put('x', { range: '5-2/1' })
    expect(bad.body.errors).toMatchObject([{ in: 'header', pointer: '#/content-range' }])
  })

  it('refuses pieces that are not the content together', async () => {
    const content = randomBytes(600_000)
    const name = sha256(content)
    const send = (bytes: Buffer, range: string) => uploads.put(bytes, { name, range })
    await send(content.subarray(0, 400_000), '0-399999/600000')
    expect((await send(randomBytes(200_000), '400000-599999/600000')).status).toBe(422)
    expect(await uploads.leftOnDisk()).toEqual([])
    expect((await api.call('GET', `/uploads/${name}`)).status).toBe(404)
    expect((await uploads.put(content)).status).toBe(200)
  })

  it('takes an empty file', async () => {
    const { body } = await uploads.deploy({ '.nojekyll': '' })
    expect((await uploads.put('')).body).toMatchObject({ size: 0, complete: true })
    expect(await uploads.jobOf(body.id)).toBe(1)
  })

  it('forgets what nobody needed, and pieces that nobody went on with', async () => {
    const content = random()
    await uploads.put(content)
    await api.db.upload.updateMany({ where: { sha256: sha256(content) }, data: { expiresAt: new Date(0) } })
    expect((await api.call('GET', `/uploads/${sha256(content)}`)).status).toBe(404)
    expect(await deleteOldUploads(api.db)).toBe(1)
    expect((await uploads.deploy({ 'index.html': content })).body.uploads.missing).toEqual([sha256(content)])
  })
})

describe('POST /uploads', () => {
  const send = (body: Buffer) => api.call('POST', '/uploads', { body, headers: tar })

  it('takes many files at once', async () => {
    const contents = Array.from({ length: 60 }, () => random(2_000))
    const { body } = await uploads.deploy(Object.fromEntries(contents.map((content, n) => [`${n}`, content])))
    const answer = await send(archive(contents.map((content) => file(sha256(content), content))))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.uploads).toHaveLength(60)
    expect(await uploads.jobOf(body.id)).toBe(1)
  })

  it('takes none if one is not what its name says', async () => {
    const [good, bad] = [random(), random()]
    const answer = await send(archive([file(sha256(good), good), file(sha256('other'), bad)]))
    expect(answer.status).toBe(422)
    expect(await uploads.isStored(sha256(good))).toBe(false)
    expect((await send(Buffer.from('nothing like an archive'))).status).toBe(422)
  })
})

it('a request that is cut off can be gone on with, and what is left of it expires', async () => {
  const directory = join(api.config.dataDir, 'cut')
  const receiver = createReceiver({ directory, artifacts: api.deps.artifacts, reserveBytes: 0 })
  const content = randomBytes(900_000)
  const piece = { accountId: 'acc_x', sha256: sha256(content), from: 0, end: 900_000, size: 900_000 }
  async function* cut() {
    yield content.subarray(0, 500_000)
    throw new Error('aborted')
  }
  await expect(receiver.receive(piece, cut())).rejects.toThrow('aborted')
  expect(await receiver.offsetOf('acc_x', piece.sha256)).toBe(500_000)
  await receiver.sweep()
  async function* rest() {
    yield content.subarray(500_000)
  }
  expect(await receiver.receive({ ...piece, from: 500_000 }, rest())).toBe(900_000)
  expect(await uploads.isStored(piece.sha256)).toBe(true)
  expect(await readdir(directory)).toEqual([])
})

it('goes on with what a process had written that was killed, once nobody can be writing to it', async () => {
  const directory = join(api.config.dataDir, 'killed')
  const receiver = createReceiver({ directory, artifacts: api.deps.artifacts, reserveBytes: 0 })
  const content = randomBytes(900_000)
  const piece = { accountId: 'acc_x', sha256: sha256(content), from: 0, end: 900_000, size: 900_000 }
  const stopped = Promise.withResolvers<void>()
  const began = Promise.withResolvers<void>()
  async function* halts() {
    yield content.subarray(0, 500_000)
    began.resolve()
    await stopped.promise
  }
  const received = receiver.receive(piece, halts()).catch(() => {})
  await began.promise
  const [name] = await readdir(directory)
  // As a killed process leaves it.
  await copyFile(join(directory, name!), join(directory, `acc_x.${piece.sha256}.1.new`))
  await copyFile(join(directory, name!), join(directory, `acc_y.${piece.sha256}.0.new`))
  expect(await receiver.offsetOf('acc_x', piece.sha256)).toBe(0)
  const before = new Date(Date.now() - 60_000)
  await utimes(join(directory, `acc_x.${piece.sha256}.1.new`), before, before)
  expect(await receiver.offsetOf('acc_x', piece.sha256)).toBe(500_000)
  expect(await receiver.offsetOf('acc_y', piece.sha256)).toBe(0)
  stopped.resolve()
  await received
  async function* rest() {
    yield content.subarray(500_000)
  }
  expect(await receiver.receive({ ...piece, from: 500_000 }, rest())).toBe(900_000)
  expect(await uploads.isStored(piece.sha256)).toBe(true)
})
