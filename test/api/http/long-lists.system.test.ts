// Long lists of files: other requests are answered while they are looked at, and they are refused as short ones are.
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tarEnd, tarHeader, tarPadding } from '../../../src/platform/files/tar.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi

beforeAll(async () => {
  api = await sharedApi()
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
})
afterAll(() => api.stop())

const hash = (n: number) => n.toString(16).padStart(64, '0')
const name = 'a-rather-long-name-of-a-folder-'.repeat(3)
const list = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    path: `${name}/${name}/${n % 50}/${name}/${n}`,
    sha256: hash(n),
    size: n,
  }))
const deploy = (files: unknown, more: { headers?: Record<string, string>; rest?: object } = {}) =>
  api.call('POST', '/deployments', { body: { project: 'site', source: { files }, ...more.rest }, ...more })

/** How many other requests are answered, one after another, before the work is done. */
async function answeredBeside(work: Promise<unknown>): Promise<number> {
  let done = false
  void work.finally(() => {
    done = true
  })
  let answered = 0
  while (!done) {
    expect((await api.call('GET', '/deployments/states')).status).toBe(200)
    answered++
    // What is answered without waiting for anything would leave no time to others.
    await setImmediate()
  }
  return answered
}

test('others are answered while a list of 1 MB is parsed, checked and stored', async () => {
  await answeredBeside(deploy(list(10)))
  const made = deploy(list(3_000), { headers: { 'idempotency-key': 'long' } })
  expect(await answeredBeside(made)).toBeGreaterThan(10)
  const { status, text, body } = await made
  expect(status, text.slice(0, 500)).toBe(201)
  expect(body.uploads.missing.length).toBe(3_000)
  // The same with another order of fields is the same request.
  const files = list(3_000).map(({ path, sha256, size }) => ({ size, sha256, path }))
  const again = await deploy(files, { headers: { 'idempotency-key': 'long' } })
  expect([again.status, again.headers['idempotency-replayed'], again.body.id]).toEqual([201, 'true', body.id])
  files[2_999]!.size++
  const other = await deploy(files, { headers: { 'idempotency-key': 'long' } })
  expect(other.body.code).toBe('idempotency_key_reused')
})

test('others are answered while a list of 8 MB is refused, for which the database is not asked', async () => {
  const files: object[] = list(20_000)
  files[19_999] = { path: 'a', sha256: 'short', size: 1 }
  const refused = deploy(files)
  // Each piece of the work is some milliseconds; as a whole it would be one, or three.
  expect(await answeredBeside(refused)).toBeGreaterThan(10)
  expect((await refused).body.errors).toMatchObject([{ pointer: '#/source/files/19999/sha256' }])
  const bad = deploy(list(20_000).map((file) => ({ ...file, path: `/${file.path}` })))
  expect(await answeredBeside(bad)).toBeGreaterThan(10)
  const { status, body } = await bad
  expect([status, body.errors.length]).toEqual([422, 100])
  expect(body.errors[99]).toMatchObject({ pointer: '#/source/files/99/path', code: 'bad_format' })
})

test('an account sends few large lists at once, and others are not held up by it', async () => {
  const files: object[] = list(4_000)
  files[0] = { path: 'a' }
  const other = await api.newAccount()
  const send = (token: string) =>
    api.call('POST', '/deployments', { body: { project: 'site', source: { files } }, token })
  const answers = await Promise.all([...Array.from({ length: 8 }, () => send(api.token)), send(other.token)])
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 429)).toHaveLength(4)
  expect(statuses.at(-1)).toBe(422)
  expect(answers.find(({ status }) => status === 429)!.headers['retry-after']).toBe('1')
  // Each is given back.
  expect((await Promise.all(Array.from({ length: 4 }, () => send(api.token)))).map(({ status }) => status)).toEqual([
    ...[422, 422, 422, 422],
  ])
})

test('a deployment takes over as much as was uploaded before, and an archive brings thousands of files', async () => {
  await api.db.$executeRaw`
    INSERT INTO upload (account_id, sha256, size, complete, expires_at)
    SELECT ${api.accountId}, lpad(to_hex(n), 64, '0'), 1, true, now() + interval '1 hour' FROM generate_series(40000, 42999) n`
  const files = Array.from({ length: 3_000 }, (_, n) => ({ path: `f/${n}`, sha256: hash(40_000 + n), size: 1 }))
  const made = await deploy(files)
  expect(made.status, made.text.slice(0, 500)).toBe(201)
  expect(made.body.uploads.missing).toEqual([])
  expect(await api.db.upload.count()).toBe(0)

  const contents = Array.from({ length: 2_000 }, (_, n) => Buffer.from(`content ${n}`))
  const entries = contents.flatMap((content) => {
    const path = createHash('sha256').update(content).digest('hex')
    const header = tarHeader({ kind: 'file', path, mode: 0o644, size: content.length })
    return [header, content, tarPadding(content.length)]
  })
  const headers = { 'content-type': 'application/x-tar' }
  const sent = await api.call('POST', '/uploads', { body: Buffer.concat([...entries, tarEnd]), headers })
  expect([sent.status, sent.body.uploads?.length], sent.text.slice(0, 500)).toEqual([200, 2_000])
})

test('every bad field of a long list is named by its place, with those beside the list', async () => {
  const files: Record<string, unknown>[] = list(5_000)
  files[0]!.size = -1
  files[700] = { ...files[700], sha256: 'short', more: 1 }
  files[4_999] = { path: 'x' }
  const { status, body } = await deploy(files, { rest: { production: 'yes' } })
  expect(status).toBe(422)
  expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
    '#/production',
    '#/source/files/0/size',
    '#/source/files/700/sha256',
    '#/source/files/700/more',
    '#/source/files/4999/sha256',
    '#/source/files/4999/size',
  ])
  const text = JSON.stringify({ project: 'site', source: { files: list(5_000) } })
  const json = { 'content-type': 'application/json' }
  const send = (body: string) => api.call('POST', '/deployments', { body, headers: json })
  expect((await send(text.replace('"size":4000', '"size":4000,"size":1'))).body).toMatchObject({ code: 'invalid_json' })
  const nul = await send(text.replace(`/${name}/4000"`, '/\\u0000"'))
  expect(nul.body.errors).toMatchObject([{ pointer: '#/source/files/4000/path', code: 'bad_characters' }])
  expect((await send(text.slice(0, -2))).body).toMatchObject({ code: 'invalid_json' })
  expect((await deploy(list(50_001))).status).toBe(413)
  const short = Array.from({ length: 60_000 }, () => ({ path: 'a' }))
  expect((await deploy(short)).body.errors[0]).toMatchObject({ pointer: '#/source/files', code: 'too_long' })
})
