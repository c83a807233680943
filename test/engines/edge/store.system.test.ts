import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Artifacts } from '../../../src/platform/artifacts/artifacts.ts'
import { createBucketArtifacts } from '../../../src/platform/artifacts/bucket/artifacts.ts'
import { createBucket } from '../../../src/platform/artifacts/bucket/client.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

let server: S3Server
let directory: string
let artifacts: Artifacts
let world: World
const logged: string[] = []
beforeAll(async () => {
  server = await startS3()
  directory = await mkdtemp(join(tmpdir(), 'berth-edge-store-'))
  const bucket = createBucket(server.options)
  artifacts = createBucketArtifacts({ bucket, root: directory, cacheBytes: 1 << 30 })
  world = await startWorld({ artifacts, log: pino({}, { write: (line) => void logged.push(line) }) })
})
afterAll(async () => {
  await world.stop()
  artifacts.close()
  await server.close()
  await rm(directory, { recursive: true })
})
afterEach(() => {
  server.trouble = null
})

const large = Buffer.alloc(1 << 20, 'large ')

test('a hundred visitors of a cold site cost one request for each object', async () => {
  const host = await world.site('cold', { 'index.html': 'cold', 'a.bin': large })
  const before = server.requests.length
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => world.get(host, index % 2 === 0 ? '/' : '/a.bin')),
  )
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  expect(answers[1]!.body.equals(large)).toBe(true)
  expect(server.requests.slice(before).filter((one) => one.startsWith('GET'))).toHaveLength(3)
})

test('what was seen is served while the store is away, and the rest is a 503', async () => {
  const host = await world.site('away', {
    'index.html': 'seen',
    'seen.bin': large,
    'other.txt': 'x',
    'other.bin': Buffer.alloc(1 << 20),
  })
  const unseen = await world.site('unseen', { 'index.html': 'unseen' })
  for (const path of ['/', '/seen.bin']) expect((await world.get(host, path)).status).toBe(200)
  server.trouble = () => 'close'
  expect((await world.get(host, '/')).text).toBe('seen')
  expect((await world.get(host, '/seen.bin', { range: 'bytes=5-8' })).text).toBe(large.subarray(5, 9).toString())
  for (const [asked, path] of [
    [host, '/other.txt'],
    [host, '/other.bin'],
    [unseen, '/?link=secret'],
  ] as const) {
    const { status, text, headers } = await world.get(asked, path)
    expect(status).toBe(503)
    expect(text).toContain('The files of this site can’t be reached')
    expect(headers['cache-control']).toBe('no-store')
  }
  expect(logged.filter((line) => line.includes(unseen))).toHaveLength(1)
  expect(logged.join('')).not.toContain('secret')
  server.trouble = null
  await until(async () => (await world.get(host, '/other.bin')).status === 200)
  expect((await world.get(unseen, '/')).text).toBe('unseen')
  // Nothing was taken for damaged.
  expect(await artifacts.damaged()).toEqual([])
})

test('a connection that the store resets, before or in the middle of an answer, is a 503 that says when to come back', async () => {
  const host = await world.site('reset', { 'index.html': 'page', 'large.bin': Buffer.alloc(1 << 20, 'reset ') })
  const unseen = await world.site('unread', { 'index.html': 'page', 'later.html': 'page' })
  const ask = async (host: string, path: string, headers: Record<string, string> = {}) => {
    const answer = await world.get(host, path, headers)
    return [answer.status, answer.headers['retry-after']]
  }
  expect((await world.get(host, '/')).status).toBe(200)
  // In this order: once no connection gets an answer, the store is left alone for a second.
  for (const trouble of ['reset halfway', 'reset'] as const) {
    server.trouble = () => trouble
    expect(await ask(unseen, '/')).toEqual([503, '5'])
    expect(await ask(host, '/large.bin')).toEqual([503, '5'])
    expect(await ask(unseen, '/', { connection: 'upgrade', upgrade: 'websocket' })).toEqual([503, '5'])
  }
  server.trouble = null
  await until(async () => (await world.get(unseen, '/')).status === 200)
  expect((await world.get(host, '/large.bin')).body.length).toBe(1 << 20)
  expect(await artifacts.damaged()).toEqual([])
})

test('what is not what its name says is served from another copy, or not at all', async () => {
  const page = '<p>text</p>\n'.repeat(500)
  const host = await world.site('lies', { 'index.html': page, 'a.txt': 'as it was stored' })
  server.trouble = (method, key) => (method === 'GET' && key.endsWith('.gzip') ? 'lie' : null)
  const { status, headers, text } = await world.get(host, '/', { 'accept-encoding': 'gzip' })
  expect([status, headers['content-encoding'], text]).toEqual([200, undefined, page])
  server.trouble = (method, key) => (method === 'GET' && key.startsWith('files/') ? 'lie' : null)
  const answer = await world.get(host, '/a.txt')
  expect(answer.status).toBe(503)
  expect(answer.text).not.toContain('as it was stored')
})
