import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { StoreUnavailable } from '../../../src/platform/artifacts/artifacts.ts'
import {
  type Bucket,
  type BucketOptions,
  createBucket,
  readAll,
  signatureMs,
} from '../../../src/platform/artifacts/bucket/client.ts'
import { contentOf } from '../../../src/platform/artifacts/bucket/objects.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'
import { until } from '../../helpers/until.ts'

let server: S3Server
let bucket: Bucket
const others: Bucket[] = []
beforeEach(async () => {
  server = await startS3()
  bucket = createBucket(server.options)
})
afterEach(async () => {
  for (const one of [bucket, ...others.splice(0)]) one.close()
  await server.close()
})

function other(options: Partial<BucketOptions>): Bucket {
  const made = createBucket({ ...server.options, ...options })
  others.push(made)
  return made
}

const put = (key: string, text: string) => bucket.put(key, contentOf(Buffer.from(text)))
const text = async (key: string) => {
  const found = await bucket.get(key)
  return found && readAll(found.body, 1 << 20)
}
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => new Error('it went well'),
    (error: Error) => error,
  )

test('objects are written, read, listed over pages and removed', async () => {
  for (let i = 10; i < 30; i++) await put(`files/${i}`, `content ${i}`)
  await put('other', '')
  expect(await text('files/12')).toBe('content 12')
  expect(await text('files/99')).toBeNull()
  expect(await bucket.head('files/12')).toMatchObject({ size: 10, sha256: contentOf(Buffer.from('content 12')).sha256 })
  await bucket.delete('files/12')
  await bucket.delete('files/12')
  expect(await bucket.head('files/12')).toBeNull()
  const keys: string[] = []
  for await (const page of bucket.list('files/')) keys.push(...page.map(({ key }) => key))
  expect(keys).toEqual(Array.from({ length: 20 }, (_, i) => `files/${i + 10}`).filter((key) => key !== 'files/12'))
})

test('a file is sent as a stream', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-s3-'))
  try {
    const content = Buffer.alloc(3 << 20, 'abc')
    await writeFile(join(directory, 'large'), content)
    const sha256 = createHash('sha256').update(content).digest('hex')
    await bucket.put('large', { sha256, size: content.length, body: join(directory, 'large') })
    expect(server.objects.get('large')!.body.equals(content)).toBe(true)
  } finally {
    await rm(directory, { recursive: true })
  }
})

test.each([
  ['a wrong key', { secretKey: 'another' }, /refuses the access key or what it may do: 403 \(SignatureDoesNotMatch\)/],
  ['an unknown bucket', { bucket: 'nothing' }, /s3:\/\/nothing at 127.0.0.1:\d+ does not exist/],
  ['a port where nothing listens', { endpoint: 'http://127.0.0.1:1' }, /does not answer: .*ECONNREFUSED/],
])('%s is told in one sentence, without any key', async (_what, options, sentence) => {
  const wrong = other(options)
  for (const ask of [
    () => wrong.get('a'),
    () => wrong.put('a', contentOf(Buffer.from('x'))),
    () => wrong.list('').next(),
  ]) {
    const error = await failure(ask())
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(error.message).toMatch(sentence)
    expect(JSON.stringify(error) + error.message).not.toMatch(/test-access-key|test-secret-key|another/)
  }
  expect(await wrong.readiness()).toMatch(sentence)
})

test('an error that passes is not seen, one that stays is', async () => {
  let left = 1
  server.trouble = () => (left-- > 0 ? { status: 500, code: 'InternalError' } : null)
  await put('a', 'x')
  expect(await text('a')).toBe('x')
  server.trouble = () => ({ status: 507, code: 'XMinioStorageFull' })
  expect((await failure(put('b', 'x'))).message).toMatch(/has no room: 507 \(XMinioStorageFull\)/)
  server.trouble = () => ({ status: 403, code: 'QuotaExceeded' })
  expect((await failure(put('b', 'x'))).message).toMatch(/has no room: 403 \(QuotaExceeded\)/)
})

test('a service that hangs is given up, and then asked by one request at a time', async () => {
  const impatient = other({ idleMs: 50 })
  server.trouble = () => 'hang'
  expect((await failure(impatient.get('a'))).message).toMatch(/nothing was heard for 0.05 s/)
  const before = server.requests.length
  const failures = await Promise.all(Array.from({ length: 50 }, () => failure(impatient.get('a'))))
  expect(failures.every((error) => error instanceof StoreUnavailable)).toBe(true)
  expect(server.requests.length - before).toBeLessThanOrEqual(2)
  server.trouble = null
  await until(async () => (await impatient.head('a').catch(() => undefined)) === null)
})

test('a body that is cut off is no whole body', async () => {
  await put('a', 'x'.repeat(1000))
  server.trouble = () => 'cut'
  expect(await failure(text('a'))).toBeInstanceOf(Error)
  expect((await failure(text('a'))).message).not.toBe('it went well')
})

test.each(['close', 'reset', 'cut', 'reset halfway', 'garbage', 'upgrade', 'hang'] as const)(
  'a service is unavailable that answers with: %s',
  async (trouble) => {
    await put('a', 'x'.repeat(1000))
    server.trouble = () => trouble
    const halfway = trouble === 'cut' || trouble === 'reset halfway'
    const asks = [
      (bucket: Bucket) => bucket.get('a').then((found) => readAll(found!.body, 1 << 20)),
      // What a request does with its body is its own affair, but not how it ends.
      (bucket: Bucket) => bucket.get('a').then((found) => found!.body.toArray()),
      ...(halfway ? [] : [(bucket: Bucket) => bucket.put('a', contentOf(Buffer.from('x')))]),
      ...(halfway ? [] : [(bucket: Bucket) => bucket.list('').next()]),
    ]
    const failures = await Promise.all(asks.map((ask) => failure(ask(other({ idleMs: 50 })))))
    for (const error of failures) expect(error).toBeInstanceOf(StoreUnavailable)
  },
)

test('an answer that is longer than it may be is no answer', async () => {
  await put('a', 'x'.repeat(1000))
  expect(await failure(bucket.get('a').then((found) => readAll(found!.body, 999)))).toBeInstanceOf(StoreUnavailable)
})

test('a file of this machine that cannot be read is not the service’s fault', async () => {
  const content = { sha256: 'a'.repeat(64), size: 3, body: join(tmpdir(), 'berth-nothing', 'here') }
  expect(await failure(bucket.put('a', content))).toMatchObject({ code: 'ENOENT' })
  expect(server.requests).toEqual([])
})

test('a list that cannot be continued is not taken for the whole', async () => {
  const { parseList } = await import('../../../src/platform/artifacts/bucket/xml.ts')
  expect(parseList('<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>')).toBeNull()
  expect(parseList('<html>Welcome</html>')).toBeNull()
})

test('a list that begins again for ever is given up', async () => {
  const page = '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>'
  let asked = 0
  const looping = createServer((_request, response) => {
    // The end of the test, if nobody gives up.
    if (++asked > 20) response.writeHead(400)
    response.end(`${page}</ListBucketResult>`)
  })
  await new Promise<void>((resolve) => looping.listen(0, '127.0.0.1', resolve))
  const bucket = other({ endpoint: `http://127.0.0.1:${(looping.address() as AddressInfo).port}` })
  try {
    const all = async () => {
      for await (const page of bucket.list('files/')) expect(page).toEqual([])
    }
    const error = await failure(all())
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(error.message).toMatch(/again and again/)
    expect(asked).toBe(2)
  } finally {
    looping.closeAllConnections()
    looping.close()
  }
})

test('a request that was signed long ago has no effect', async () => {
  await put('a', 'x')
  const error = await failure(bucket.delete('a', new Date(Date.now() - signatureMs - 1000)))
  expect(error.message).toMatch(/takes the clock of this machine for wrong/)
  expect(await text('a')).toBe('x')
  await bucket.delete('a', new Date(Date.now() - signatureMs + 60_000))
  expect(await text('a')).toBeNull()
})

test('connections that the service has closed meanwhile are replaced without an error', async () => {
  for (let round = 0; round < 3; round++) {
    await Promise.all(Array.from({ length: 20 }, (_, index) => put(`files/${index}`, 'x')))
    // The next request on each of them is reset.
    const known = new Set(server.sockets)
    server.reset = (socket) => known.has(socket)
    expect(await text('files/1')).toBe('x')
    await put('files/1', 'y')
  }
})
