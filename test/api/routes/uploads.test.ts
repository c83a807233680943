// Uploads and deployments without git: what is asked for, what is refused, and that refusals leave nothing.
import { createHash, randomBytes } from 'node:crypto'
import { copyFile, readdir, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TarEntry, tarEnd, tarHeader, tarPadding } from '../../../src/platform/tar.ts'
import { endUnfinished } from '../../../src/services/deployments/uploaded.ts'
import { createReceiver } from '../../../src/services/uploads/receiver.ts'
import { forgetOldUploads } from '../../../src/services/uploads/uploads.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
const octets = { 'content-type': 'application/octet-stream' }

beforeAll(async () => {
  const started = await startApi()
  // A busy server sheds work for some moments, here after lists of thousands of files: whoever is told so comes again.
  const call: TestApi['call'] = async (...request) => {
    for (let tries = 1; ; tries++) {
      const answer = await started.call(...request)
      if (answer.status !== 503 || tries === 50) return answer
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  api = { ...started, call }
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
})

afterAll(() => api.stop())

type Files = Record<string, string | Buffer>

const listed = (files: Files) =>
  Object.entries(files).map(([path, content]) => ({
    path,
    sha256: sha256(content),
    size: Buffer.byteLength(content as string),
  }))

const deploy = (files: Files, more: { token?: string; project?: string; prebuilt?: boolean } = {}) => {
  const { token, project = 'site', prebuilt } = more
  const body = { project, source: { files: listed(files), ...(prebuilt && { prebuilt }) } }
  return api.call('POST', '/deployments', { body, ...(token && { token }) })
}

const put = (content: string | Buffer, options: { name?: string; token?: string; headers?: object } = {}) => {
  const headers = { ...octets, ...options.headers } as Record<string, string>
  const body = Buffer.from(content as string)
  const token = options.token && { token: options.token }
  return api.call('PUT', `/uploads/${options.name ?? sha256(content)}`, { body, headers, ...token })
}

const jobOf = (id: string) => api.db.job.count({ where: { kind: 'build', key: id } })
const random = (bytes = 40) => randomBytes(bytes / 2).toString('hex')

/** Everything that uploads leave on the disk of the API. */
async function leftOnDisk(): Promise<string[]> {
  return readdir(join(api.config.dataDir, 'uploads')).catch(() => [])
}

async function isStored(hash: string): Promise<boolean> {
  return api.deps.artifacts.isWhole(hash)
}

function archive(entries: (TarEntry & { content?: Buffer })[]): Buffer {
  const blocks = entries.flatMap(({ content, ...entry }) => {
    const bytes = content ?? Buffer.alloc(0)
    return [tarHeader(entry), bytes, tarPadding(bytes.length)]
  })
  return Buffer.concat([...blocks, tarEnd])
}

const file = (path: string, text: string | Buffer, mode = 0o644) => {
  const content = Buffer.from(text as string)
  return { kind: 'file' as const, path, mode, size: content.length, content }
}

describe('a deployment without git', () => {
  it('names what is missing, and begins by itself when the last of it has come', async () => {
    const [one, two] = [random(), random()]
    const made = await deploy({ 'index.html': one, 'a/b.txt': two, 'same.txt': one })
    expect(made.status, made.text).toBe(201)
    const { id, state, source, ref, commit, uploads } = made.body
    expect({ state, source, ref, commit }).toEqual({ state: 'BUILDING', source: 'upload', ref: '', commit: '' })
    expect(uploads.missing).toEqual([sha256(one), sha256(two)].sort())
    expect(Date.parse(uploads.expiresAt)).toBeGreaterThan(Date.now() + 3_500_000)
    const { body: log } = await api.call('GET', `/deployments/${id}/logs`)
    expect(log.lines[0]).toMatchObject({ step: 'queue', text: 'Waiting for 2 files to be uploaded.' })

    expect((await put(one)).body).toMatchObject({ complete: true, offset: 40, expiresAt: null })
    expect((await api.call('GET', `/deployments/${id}`)).body.uploads.missing).toEqual([sha256(two)])
    expect(await jobOf(id)).toBe(0)
    expect((await put(two)).status).toBe(200)
    expect(await jobOf(id)).toBe(1)
    expect((await api.call('GET', `/deployments/${id}`)).body.uploads).toEqual({ missing: [], expiresAt: null })

    // Only what has changed travels the next time.
    const changed = random()
    const next = await deploy({ 'index.html': changed, 'a/b.txt': two })
    expect(next.body.uploads.missing).toEqual([sha256(changed)])
  })

  it('begins at once when everything was uploaded before', async () => {
    const content = random()
    expect((await put(content)).body.expiresAt).not.toBeNull()
    const made = await deploy({ 'index.html': content })
    expect(made.body.uploads).toEqual({ missing: [], expiresAt: null })
    expect(await jobOf(made.body.id)).toBe(1)
  })

  it('begins once when its last files come at the same time', async () => {
    const contents = Array.from({ length: 12 }, () => random())
    const made = await deploy(Object.fromEntries(contents.map((content, n) => [`${n}.txt`, content])))
    const answers = await Promise.all([...contents, ...contents].map((content) => put(content)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(await jobOf(made.body.id)).toBe(1)
  })

  it('asks another account, and another project, for the same content again', async () => {
    const content = random()
    const first = await deploy({ 'index.html': content })
    await put(content)
    expect(await jobOf(first.body.id)).toBe(1)
    const other = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'site' }, token: other.token })
    const hash = sha256(content)
    expect((await deploy({ 'x.html': content }, { token: other.token })).body.uploads.missing).toEqual([hash])
    expect((await api.call('GET', `/uploads/${hash}`, { token: other.token })).status).toBe(404)
    await api.call('POST', '/projects', { body: { name: 'other' } })
    expect((await deploy({ 'x.html': content }, { project: 'other' })).body.uploads.missing).toEqual([hash])
  })

  it('is given up when its files do not come in time', async () => {
    const { body } = await deploy({ 'index.html': random(), 'a.txt': random() })
    const source = { where: { deploymentId: body.id }, data: { expiresAt: new Date(Date.now() - 1) } }
    await api.db.deploymentSource.update(source)
    expect(await endUnfinished(api.db, api.deps.urls)).toBe(1)
    const ended = await api.call('GET', `/deployments/${body.id}`)
    expect(ended.body).toMatchObject({ state: 'ERROR', error: { code: 'upload_incomplete' } })
    expect(ended.body.uploads).toBeUndefined()
  })

  it('can be canceled while it waits, and what comes later starts nothing', async () => {
    const content = random()
    const { body } = await deploy({ 'index.html': content })
    expect((await api.call('POST', `/deployments/${body.id}/cancel`)).status).toBe(202)
    expect((await put(content)).status).toBe(200)
    expect(await jobOf(body.id)).toBe(0)
  })

  it('refuses hostile and doubtful paths, naming each', async () => {
    const bad = [
      '../up',
      '/abs',
      'a//b',
      'a/./b',
      '.git/config',
      'a/.GIT/hooks/x',
      'git~1/x',
      'a\u0007b',
      '.git ./x',
      '.g\u200dit/x',
    ]
    const made = await deploy(Object.fromEntries(bad.map((path) => [path, 'x'])))
    expect(made.status).toBe(422)
    expect(made.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(
      bad.map((_, index) => `#/source/files/${index}/path`),
    )
    const hash = sha256('x')
    const twice = (...paths: string[]) => {
      const files = paths.map((path) => ({ path, sha256: hash, size: 1 }))
      return api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    }
    for (const paths of [
      ['a', 'a'],
      ['\u00e9', 'e\u0301'],
      ['a', 'a/b'],
    ]) {
      const { status, body } = await twice(...paths)
      expect({ status, code: body.errors[0].code }).toEqual({ status: 422, code: 'repeated' })
    }
    const other = { path: 'a', sha256: hash, size: 1, mode: 0o060000 }
    const device = await api.call('POST', '/deployments', { body: { project: 'site', source: { files: [other] } } })
    expect(device.body.errors).toMatchObject([{ pointer: '#/source/files/0/mode' }])
    const withRef = { project: 'site', ref: 'main', source: { files: [{ path: 'a', sha256: hash, size: 1 }] } }
    expect((await api.call('POST', '/deployments', { body: withRef })).body.errors).toMatchObject([
      { pointer: '#/ref' },
    ])
  })

  it('refuses 100,000 files before anything is stored', async () => {
    const before = await api.db.deployment.count()
    const files = Array.from({ length: 100_000 }, (_, n) => ({ path: `f${n}`, sha256: 'a'.repeat(64), size: 1 }))
    const made = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    expect(made.body).toMatchObject({ status: 413, code: 'body_too_large' })
    expect(await api.db.deployment.count()).toBe(before)
  })

  it('takes 20,000 files', async () => {
    const content = random()
    const files = Array.from({ length: 20_000 }, (_, n) => ({
      path: `d${n % 100}/${n}`,
      sha256: sha256(content),
      size: 40,
    }))
    const made = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    expect(made.status).toBe(201)
    await put(content)
    expect(await jobOf(made.body.id)).toBe(1)
  })

  it('refuses git for a project that has no repository', async () => {
    const made = await api.call('POST', '/deployments', { body: { project: 'site' } })
    expect(made.body).toMatchObject({ status: 409, code: 'project_without_repository' })
  })
})

describe('quotas', () => {
  it('bound files, bytes of a file, of a deployment, and of all that is held', async () => {
    const { accountId, token } = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'site' }, token })
    const limits = { sourceFiles: 2, sourceBytes: 100, uploadFileBytes: 60, uploadBytes: 150 }
    await api.db.account.update({ where: { id: accountId }, data: { limits } })
    const refused = async (files: Files) => (await deploy(files, { token })).body
    expect(await refused({ a: '1', b: '2', c: '3' })).toMatchObject({
      code: 'quota_exceeded',
      limit: 'sourceFiles',
      max: 2,
    })
    expect(await refused({ a: random(60), b: random(60) })).toMatchObject({ limit: 'sourceBytes', used: 120 })
    expect(await refused({ a: random(70) })).toMatchObject({ limit: 'uploadFileBytes' })
    expect((await put(random(70), { token })).body).toMatchObject({ code: 'body_too_large' })
    const kept = { a: random(50), b: random(50) }
    expect((await deploy(kept, { token })).status).toBe(201)
    expect(await refused({ a: random(60) })).toMatchObject({ limit: 'uploadBytes', used: 100, max: 150 })
    // What was promised room comes in; what nobody waits for does not.
    expect((await put(random(60), { token })).body).toMatchObject({ limit: 'uploadBytes' })
    expect((await put(kept.a, { token })).status).toBe(200)
    expect((await deploy(kept, { token })).body.uploads.missing).toEqual([sha256(kept.b)])
  })

  const limited = async (limits: object) => {
    const { accountId, token } = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'site' }, token })
    await api.db.account.update({ where: { id: accountId }, data: { limits } })
    return token
  }

  it('count what a deployment waits for once, also when it comes in an archive', async () => {
    const token = await limited({ uploadBytes: 150 })
    const files = { a: random(50), b: random(50) }
    expect((await deploy(files, { token })).status).toBe(201)
    const send = (contents: string[]) =>
      api.call('POST', '/uploads', {
        body: archive(contents.map((content) => file(sha256(content), content))),
        headers: { 'content-type': 'application/x-tar' },
        token,
      })
    expect((await send([files.a, files.b, random(60)])).body).toMatchObject({ limit: 'uploadBytes', used: 100 })
    const sent = await send([files.a, files.b, random(40)])
    expect(sent.status, sent.text).toBe(200)
  })

  it('hold for sizes that lie', async () => {
    const token = await limited({ uploadBytes: 150 })
    const piece = (name: string, from: number, to: number, size: number) =>
      put(randomBytes(to - from), { name, token, headers: { 'content-range': `bytes ${from}-${to - 1}/${size}` } })
    const fresh = () => sha256(random())
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
    expect((await put(content, { token })).body).toMatchObject({ limit: 'uploadBytes' })
    // What is here already has a size.
    const small = random(10)
    expect((await put(small, { token })).status).toBe(200)
    expect((await piece(sha256(small), 0, 5, 30)).body.errors).toMatchObject([{ in: 'header', code: 'wrong' }])
    // The pieces would be kept for an hour.
    await api.db.upload.deleteMany({ where: { complete: false } })
    for (const name of await leftOnDisk()) await rm(join(api.config.dataDir, 'uploads', name))
  })
})

describe('PUT /uploads/{sha256}', () => {
  it('refuses content that is not what the path says, and keeps nothing of it', async () => {
    for (const size of [100, 600_000]) {
      const content = random(size)
      const name = sha256(random())
      const answer = await put(content, { name })
      expect(answer.body).toMatchObject({ status: 422, code: 'validation_failed' })
      expect(await isStored(sha256(content))).toBe(false)
      expect((await api.call('GET', `/uploads/${name}`)).status).toBe(404)
    }
    expect(await leftOnDisk()).toEqual([])
    expect(await api.db.upload.count({ where: { complete: false } })).toBe(0)
  })

  it('refuses a size that differs from that of the list', async () => {
    const content = random()
    const files = [{ path: 'a', sha256: sha256(content), size: 41 }]
    const made = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    expect(made.status).toBe(201)
    expect((await put(content)).status).toBe(422)
    expect(await isStored(sha256(content))).toBe(false)
    await api.call('POST', `/deployments/${made.body.id}/cancel`)
    // What is stored already has a size, which the list cannot change.
    await put(content)
    const again = await api.call('POST', '/deployments', { body: { project: 'site', source: { files } } })
    expect(again.body.errors).toMatchObject([{ pointer: '#/source/files/0/size', code: 'wrong' }])
  })

  it('takes pieces, and tells where the next one begins', async () => {
    const content = randomBytes(700_000)
    const name = sha256(content)
    const { body } = await deploy({ 'a.bin': content })
    const piece = (from: number, to: number, total = content.length) =>
      put(content.subarray(from, to), { name, headers: { 'content-range': `bytes ${from}-${to - 1}/${total}` } })
    expect((await piece(0, 300_000)).body).toMatchObject({ offset: 300_000, complete: false, size: 700_000 })
    const head = await api.call('HEAD', `/uploads/${name}`)
    expect(head.headers['upload-offset']).toBe('300000')
    expect((await piece(200_000, 700_000)).body).toMatchObject({ code: 'upload_offset_wrong' })
    expect((await piece(300_000, 500_000)).body).toMatchObject({ offset: 500_000 })
    expect((await piece(500_000, 700_000)).body).toMatchObject({ offset: 700_000, complete: true })
    expect(await isStored(name)).toBe(true)
    expect(await jobOf(body.id)).toBe(1)
    expect(await leftOnDisk()).toEqual([])
    const bad = await put('x', { headers: { 'content-range': 'bytes 5-2/1' } })
    expect(bad.body.errors).toMatchObject([{ in: 'header', pointer: '#/content-range' }])
  })

  it('refuses pieces that are not the content together', async () => {
    const content = randomBytes(600_000)
    const name = sha256(content)
    const send = (bytes: Buffer, range: string) => put(bytes, { name, headers: { 'content-range': range } })
    await send(content.subarray(0, 400_000), 'bytes 0-399999/600000')
    expect((await send(randomBytes(200_000), 'bytes 400000-599999/600000')).status).toBe(422)
    expect(await leftOnDisk()).toEqual([])
    expect((await api.call('GET', `/uploads/${name}`)).status).toBe(404)
    expect((await put(content)).status).toBe(200)
  })

  it('takes an empty file', async () => {
    const { body } = await deploy({ '.nojekyll': '' })
    expect((await put('')).body).toMatchObject({ size: 0, complete: true })
    expect(await jobOf(body.id)).toBe(1)
  })

  it('forgets what nobody needed, and pieces that nobody went on with', async () => {
    const content = random()
    await put(content)
    await api.db.upload.updateMany({ where: { sha256: sha256(content) }, data: { expiresAt: new Date(0) } })
    expect((await api.call('GET', `/uploads/${sha256(content)}`)).status).toBe(404)
    expect(await forgetOldUploads(api.db)).toBe(1)
    expect((await deploy({ 'index.html': content })).body.uploads.missing).toEqual([sha256(content)])
  })
})

describe('POST /uploads', () => {
  const send = (body: Buffer) =>
    api.call('POST', '/uploads', { body, headers: { 'content-type': 'application/x-tar' } })

  it('takes many files at once', async () => {
    const contents = Array.from({ length: 60 }, () => random(2_000))
    const { body } = await deploy(Object.fromEntries(contents.map((content, n) => [`${n}`, content])))
    const answer = await send(archive(contents.map((content) => file(sha256(content), content))))
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.uploads).toHaveLength(60)
    expect(await jobOf(body.id)).toBe(1)
  })

  it('takes none if one is not what its name says', async () => {
    const [good, bad] = [random(), random()]
    const answer = await send(archive([file(sha256(good), good), file(sha256('other'), bad)]))
    expect(answer.status).toBe(422)
    expect(await isStored(sha256(good))).toBe(false)
    expect((await send(Buffer.from('nothing like an archive'))).status).toBe(422)
  })
})

describe('an archive in one request', () => {
  const send = (body: Buffer, query = 'project=site', type = 'application/gzip') =>
    api.call('POST', `/deployments?${query}`, { body, headers: { 'content-type': type } })

  it('is a deployment of its files', async () => {
    const [page, program] = [random(), random()]
    const tar = archive([
      { kind: 'directory', path: 'bin', mode: 0o755 },
      file('./index.html', page),
      file('bin/run', program, 0o755),
      { kind: 'link', path: 'start', target: 'bin/run' },
    ])
    for (const [bytes, type] of [
      [gzipSync(tar), 'application/gzip'],
      [tar, 'application/x-tar'],
    ] as const) {
      const made = await send(bytes, 'project=site&production=true', type)
      expect(made.status, made.text).toBe(201)
      expect(made.body).toMatchObject({ source: 'upload', production: true, uploads: { missing: [] } })
      expect(await jobOf(made.body.id)).toBe(1)
      const where = { deploymentId: made.body.id }
      const rows = await api.db.sourceFile.findMany({ where, orderBy: { path: 'asc' } })
      expect(rows.map(({ path, mode }) => [path, mode])).toEqual([
        ['bin/run', 0o100755],
        ['index.html', 0o100644],
        ['start', 0o120000],
      ])
    }
  })

  it('is refused as a whole, and nothing of it is stored', async () => {
    const good = random()
    const before = await api.db.deployment.count()
    const hostile: (TarEntry & { content?: Buffer })[] = [
      file('../up', 'x'),
      file('/etc/x', 'x'),
      file('.git/config', 'x'),
      file('good', 'again'),
      file('good/below', 'x'),
      { kind: 'link', path: 'out', target: '../../etc/passwd' },
      { kind: 'link', path: 'out', target: '/etc/passwd' },
    ]
    for (const entry of hostile) {
      const answer = await send(archive([file('good', good), entry]), 'project=site', 'application/x-tar')
      expect(answer.status, JSON.stringify(entry.path)).toBe(422)
    }
    const device = archive([file('good', good), file('null', '')])
    device[1024 + 156] = 0x33
    const sum = device.subarray(1024, 1536).reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0)
    device.write(sum.toString(8).padStart(6, '0'), 1024 + 148, 'latin1')
    expect((await send(device)).body.detail).toContain('a device')
    const zipped = gzipSync(archive([file('good', good)]))
    expect((await send(zipped.subarray(0, zipped.length - 20))).status).toBe(422)
    expect((await send(Buffer.from('hello'))).status).toBe(422)
    expect((await send(zipped, 'project=nobody')).status).toBe(404)
    expect((await send(zipped, '')).body.errors).toMatchObject([{ in: 'query', pointer: '#/project' }])
    expect(await isStored(sha256(good))).toBe(false)
    expect(await leftOnDisk()).toEqual([])
    expect(await api.db.deployment.count()).toBe(before)
  })

  it('is bounded by what it unpacks to', async () => {
    const { accountId, token } = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'site' }, token })
    await api.db.account.update({ where: { id: accountId }, data: { limits: { sourceBytes: 1_000_000 } } })
    const bomb = gzipSync(archive([file('zeros', Buffer.alloc(5_000_000))]))
    const headers = { 'content-type': 'application/gzip' }
    const answer = await api.call('POST', '/deployments?project=site', { body: bomb, headers, token })
    expect(answer.status).toBe(422)
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
  expect(await isStored(piece.sha256)).toBe(true)
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
  expect(await isStored(piece.sha256)).toBe(true)
})
