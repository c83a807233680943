// Deployments without git: which files are asked for, what is refused, and that refusals leave nothing.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { poolUsage } from '../../../src/platform/database/database.ts'
import type { TarEntry } from '../../../src/platform/files/tar.ts'
import { endUnfinished } from '../../../src/services/deployments/uploaded.ts'
import { lockUploads } from '../../../src/services/uploads/statements.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { closed } from '../../helpers/closed.ts'
import { openConnection, requestOf } from '../../helpers/connection.ts'
import { until } from '../../helpers/until.ts'
import { archive, file, random, sha256, tar, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>

beforeAll(async () => {
  api = await startApi()
  uploads = uploadsOf(api)
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
})

afterAll(() => api.stop())

describe('a deployment without git', () => {
  it('names what is missing, and begins by itself when the last of it has come', async () => {
    const [one, two] = [random(), random()]
    const made = await uploads.deploy({ 'index.html': one, 'a/b.txt': two, 'same.txt': one })
    expect(made.status, made.text).toBe(201)
    const { id, state, source, ref, commit } = made.body
    expect({ state, source, ref, commit }).toEqual({ state: 'BUILDING', source: 'upload', ref: '', commit: '' })
    expect(made.body.uploads.missing).toEqual([sha256(one), sha256(two)].sort())
    expect(Date.parse(made.body.uploads.expiresAt)).toBeGreaterThan(Date.now() + 3_500_000)
    const { body: log } = await api.call('GET', `/deployments/${id}/logs`)
    expect(log.lines[0]).toMatchObject({ step: 'queue', text: 'Waiting for 2 files to be uploaded.' })

    expect((await uploads.put(one)).body).toMatchObject({ complete: true, offset: 40, expiresAt: null })
    expect((await api.call('GET', `/deployments/${id}`)).body.uploads.missing).toEqual([sha256(two)])
    expect(await uploads.jobOf(id)).toBe(0)
    expect((await uploads.put(two)).status).toBe(200)
    expect(await uploads.jobOf(id)).toBe(1)
    expect((await api.call('GET', `/deployments/${id}`)).body.uploads).toEqual({
      missing: [],
      missingFiles: 0,
      expiresAt: null,
    })

    // Only what has changed travels the next time.
    const changed = random()
    const next = await uploads.deploy({ 'index.html': changed, 'a/b.txt': two })
    expect(next.body.uploads.missing).toEqual([sha256(changed)])
  })

  it('names everything at first, then some hundreds at a time until nothing is left', async () => {
    const contents = new Map(Array.from({ length: 1_100 }, () => random()).map((content) => [sha256(content), content]))
    const files = Object.fromEntries([...contents.values()].map((content, n) => [`${n}.txt`, content]))
    const made = await uploads.deploy({ ...files, 'same.txt': files['0.txt']! })
    expect(made.body.uploads.missing).toEqual([...contents.keys()].sort())
    expect(made.body.uploads.missingFiles).toBe(1_101)
    const rounds: number[] = []
    for (;;) {
      const { body } = await api.call('GET', `/deployments/${made.body.id}`)
      const { missing, missingFiles } = body.uploads
      if (missing.length === 0) break
      rounds.push(missing.length)
      expect(missingFiles).toBeGreaterThanOrEqual(missing.length)
      const some = archive(missing.map((hash: string) => file(hash, contents.get(hash)!)))
      expect((await api.call('POST', '/uploads', { body: some, headers: tar })).status).toBe(200)
    }
    expect(rounds).toEqual([500, 500, 100])
    expect(await uploads.jobOf(made.body.id)).toBe(1)
  })

  it('begins at once when everything was uploaded before', async () => {
    const content = random()
    expect((await uploads.put(content)).body.expiresAt).not.toBeNull()
    const made = await uploads.deploy({ 'index.html': content })
    expect(made.body.uploads).toEqual({ missing: [], missingFiles: 0, expiresAt: null })
    expect(await uploads.jobOf(made.body.id)).toBe(1)
  })

  it('begins once when its last files come at the same time', async () => {
    const contents = Array.from({ length: 12 }, () => random())
    const made = await uploads.deploy(Object.fromEntries(contents.map((content, n) => [`${n}.txt`, content])))
    const answers = await Promise.all([...contents, ...contents].map((content) => uploads.put(content)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(await uploads.jobOf(made.body.id)).toBe(1)
  })

  it('asks another account, and another project, for the same content again', async () => {
    const content = random()
    const first = await uploads.deploy({ 'index.html': content })
    await uploads.put(content)
    expect(await uploads.jobOf(first.body.id)).toBe(1)
    const other = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'site' }, token: other.token })
    const hash = sha256(content)
    expect((await uploads.deploy({ 'x.html': content }, { token: other.token })).body.uploads.missing).toEqual([hash])
    expect((await api.call('GET', `/uploads/${hash}`, { token: other.token })).status).toBe(404)
    await api.call('POST', '/projects', { body: { name: 'other' } })
    expect((await uploads.deploy({ 'x.html': content }, { project: 'other' })).body.uploads.missing).toEqual([hash])
  })

  it('is given up when its files do not come in time', async () => {
    const { body } = await uploads.deploy({ 'index.html': random(), 'a.txt': random() })
    const source = { where: { deploymentId: body.id }, data: { expiresAt: new Date(Date.now() - 1) } }
    await api.db.deploymentSource.update(source)
    expect(await endUnfinished(api.db, api.deps.urls)).toBe(1)
    const ended = await api.call('GET', `/deployments/${body.id}`)
    expect(ended.body).toMatchObject({ state: 'ERROR', error: { code: 'upload_incomplete' } })
    expect(ended.body.uploads).toBeUndefined()
  })

  it('can be canceled while it waits, and what comes later starts nothing', async () => {
    const content = random()
    const { body } = await uploads.deploy({ 'index.html': content })
    expect((await api.call('POST', `/deployments/${body.id}/cancel`)).status).toBe(202)
    expect((await uploads.put(content)).status).toBe(200)
    expect(await uploads.jobOf(body.id)).toBe(0)
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
    const made = await uploads.deploy(Object.fromEntries(bad.map((path) => [path, 'x'])))
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

  it('refuses git for a project that has no repository', async () => {
    const made = await api.call('POST', '/deployments', { body: { project: 'site' } })
    expect(made.body).toMatchObject({ status: 409, code: 'project_without_repository' })
  })
})

describe('an archive in one request', () => {
  const send = (body: Buffer, query = 'project=site', type = 'application/gzip') =>
    api.call('POST', `/deployments/archive?${query}`, { body, headers: { 'content-type': type } })

  it('is a deployment of its files', async () => {
    const [page, program] = [random(), random()]
    const packed = archive([
      { kind: 'directory', path: 'bin', mode: 0o755 },
      file('./index.html', page),
      file('bin/run', program, 0o755),
      { kind: 'link', path: 'start', target: 'bin/run' },
    ])
    for (const [bytes, type] of [
      [gzipSync(packed), 'application/gzip'],
      [packed, 'application/x-tar'],
      [packed, 'application/octet-stream'],
      [gzipSync(packed), 'APPLICATION/GZIP'],
      [packed, 'application/octet-stream; charset=x'],
      [packed, 'Application/X-Tar ;a=b'],
    ] as const) {
      const made = await send(bytes, 'project=site&production=true', type)
      expect(made.status, made.text).toBe(201)
      expect(made.body).toMatchObject({ source: 'upload', production: true, uploads: { missing: [] } })
      expect(await uploads.jobOf(made.body.id)).toBe(1)
      const where = { deploymentId: made.body.id }
      const rows = await api.db.sourceFile.findMany({ where, orderBy: { path: 'asc' } })
      expect(rows.map(({ path, mode }) => [path, mode])).toEqual([
        ['bin/run', 0o100755],
        ['index.html', 0o100644],
        ['start', 0o120000],
      ])
    }
  })

  it('is told by its Content-Digest from another one of the same length under a used key', async () => {
    const [one, two] = [random(), random()].map((content) => archive([file('index.html', content)]))
    const once = (body: Buffer) => {
      const headers = { ...tar, 'idempotency-key': 'archive', 'content-digest': `sha-256=:${sha256(body)}:` }
      return api.call('POST', '/deployments/archive?project=site', { body, headers })
    }
    const made = await once(one!)
    expect((await once(one!)).body.id).toBe(made.body.id)
    expect(await once(two!)).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
  })

  it('is no archive by a media type that only begins like one', async () => {
    const packed = archive([file('index.html', random())])
    for (const type of ['application/gzip2', 'application/x-tar+json', 'text/plain; a=application/gzip']) {
      expect((await send(packed, 'project=site', type)).status, type).toBe(415)
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
    expect(await uploads.isStored(sha256(good))).toBe(false)
    expect(await uploads.leftOnDisk()).toEqual([])
    expect(await api.db.deployment.count()).toBe(before)
  })

  it('is not unpacked for a client that left while another one of its account was', async () => {
    const turn = Promise.withResolvers<void>()
    const recheck = vi.spyOn(api.app, 'recheck').mockImplementationOnce(() => turn.promise)
    const first = send(archive([file('a', random())]), 'project=site', 'application/x-tar')
    await until(() => recheck.mock.calls.length === 1)

    const content = random()
    const body = archive([file('b', content)])
    const connection = await openConnection(api)
    const read = new Promise<Socket>((resolve) => {
      api.app.server.once('request', (request: IncomingMessage) => request.once('end', () => resolve(request.socket)))
    })
    const headers = { ...tar, 'content-length': String(body.length) }
    connection.send(requestOf(api.token, 'POST', '/deployments?project=site', headers))
    connection.socket.write(body)
    const gone = closed(await read)
    await until(async () => (await uploads.leftOnDisk()).length === 2)
    connection.socket.destroy()
    await gone

    turn.resolve()
    expect((await first).status).toBe(201)
    await until(async () => (await uploads.leftOnDisk()).length === 0)
    expect(recheck).toHaveBeenCalledTimes(1)
    expect(await uploads.isStored(sha256(content))).toBe(false)
    recheck.mockRestore()
  })

  it('is bounded by what it unpacks to', async () => {
    const { token } = await uploads.limited({ sourceBytes: 1_000_000 })
    const bomb = gzipSync(archive([file('zeros', Buffer.alloc(5_000_000))]))
    const headers = { 'content-type': 'application/gzip' }
    const answer = await api.call('POST', '/deployments/archive?project=site', { body: bomb, headers, token })
    expect(answer.status).toBe(422)
    const huge = { ...headers, 'content-length': '1000000000000' }
    const refused = await api.call('POST', '/deployments/archive?project=site', { body: 'x', headers: huge, token })
    expect(refused.body).toMatchObject({ status: 413, code: 'body_too_large' })
  })

  it('is the only body of its operation', async () => {
    const json = await api.call('POST', '/deployments/archive?project=site', { body: { project: 'site' } })
    expect(json.body).toMatchObject({ status: 415, code: 'unsupported_media_type' })
    expect((await send(Buffer.alloc(0))).status).toBe(422)
    const { body } = await api.call('GET', '/deployments/archive')
    expect(body.code).toBe('method_not_allowed')
  })

  it('may still be the body of POST /deployments, which says that it is deprecated', async () => {
    const [body, headers] = [gzipSync(archive([file('a', random())])), { 'content-type': 'application/gzip' }]
    const key = { 'idempotency-key': random() }
    for (const more of [{}, key, key]) {
      const old = await api.call('POST', '/deployments?project=site', { body, headers: { ...headers, ...more } })
      expect(old).toMatchObject({
        status: 201,
        body: { source: 'upload' },
        headers: { deprecation: '@1795046400', link: '</changelog>; rel="deprecation"; type="text/html"' },
      })
    }
    expect((await send(body)).headers.deprecation).toBeUndefined()
    const listed = await api.call('POST', '/deployments', {
      body: { project: 'site', source: { files: [{ path: 'a', sha256: sha256('a'), size: 1 }] } },
    })
    expect([listed.status, listed.headers.deprecation]).toEqual([201, undefined])
  })
})

it('the deployments with files of an account are written one after another, and what waits holds no connection', async () => {
  const locked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holding = api.db.$transaction(
    async (db) => {
      await lockUploads(db, { accountId: api.accountId })
      locked.resolve()
      await release.promise
    },
    { timeout: 120_000 },
  )
  await locked.promise
  const sent = Array.from({ length: 34 }, () => uploads.deploy({ 'index.html': random() }))
  // One is running and 32 are waiting.
  expect(await Promise.race(sent)).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
  expect(poolUsage(api.db)).toMatchObject({ inUse: 2, waiting: 0 })
  release.resolve()
  await holding
  const statuses = (await Promise.all(sent)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([...Array(33).fill(201), 429])
})
