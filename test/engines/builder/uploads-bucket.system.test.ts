// Deployments without git where artifacts are in a bucket: kept while they are needed, no longer, and whole.
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createStorage } from '../../../src/engines/storage/index.ts'
import type { Artifacts } from '../../../src/platform/artifacts/artifacts.ts'
import { openArtifacts } from '../../../src/platform/storage/open-artifacts.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, startPlatform } from './host.ts'

let server: S3Server
let platform: Platform
/** The store as another machine has it. */
let elsewhere: Artifacts
let directory: string
beforeAll(async () => {
  server = await startS3()
  platform = await startPlatform(server.environment)
  directory = await mkdtemp(join(tmpdir(), 'berth-elsewhere-'))
  elsewhere = openArtifacts({ ...platform.api.config, dataDir: directory })
})
afterAll(async () => {
  elsewhere.close()
  await platform.stop()
  await server.close()
  await rm(directory, { recursive: true })
})

const sha256 = (content: string) => createHash('sha256').update(content).digest('hex')
const objectsOf = (hash: string) => [...server.objects.keys()].filter((key) => key.endsWith(hash))

function put(content: string) {
  const headers = { 'content-type': 'application/octet-stream' }
  return platform.api.call('PUT', `/uploads/${sha256(content)}`, { body: Buffer.from(content), headers })
}

async function deploy(project: string, files: Record<string, string>): Promise<{ id: string; missing: string[] }> {
  const listed = Object.entries(files).map(([path, text]) => ({ path, sha256: sha256(text), size: text.length }))
  const body = { project, production: true, source: { files: listed, prebuilt: true } }
  const made = await platform.api.call('POST', '/deployments', { body })
  expect(made.status, made.text).toBe(201)
  const { missing } = made.body.uploads
  for (const hash of missing) {
    expect((await put(Object.values(files).find((text) => sha256(text) === hash)!)).status).toBe(200)
  }
  expect(await platform.settled(made.body.id), await platform.log(made.body.id)).toMatchObject({ state: 'READY' })
  await until(async () => (await platform.api.db.job.count({ where: { kind: 'build', key: made.body.id } })) === 0)
  return { id: made.body.id, missing }
}

function storage() {
  const { config, db } = platform.api
  return createStorage({ config, db, artifacts: platform.artifacts, log: pino({ level: 'silent' }) })
}

async function sweep(): Promise<void> {
  for (const object of server.objects.values()) object.modifiedMs = 0
  await storage().sweep(AbortSignal.timeout(60_000))
}

const shown = async (id: string, path = 'index.html') =>
  (await elsewhere.load((await elsewhere.read(id, { fresh: true }))!.files[path]!.hash)).toString()

it('keeps what deployments need through a sweep, so that they are promoted and deployed again; forgets the rest', async () => {
  const { api } = platform
  await api.call('POST', '/projects', { body: { name: 'kept', framework: 'static' } })
  const [one, two] = [
    { 'index.html': 'one', 'a.txt': 'both' },
    { 'index.html': 'two', 'a.txt': 'both' },
  ]
  const first = await deploy('kept', one)
  const second = await deploy('kept', two)
  expect(second.missing).toEqual([sha256('two')])
  expect((await put('for nobody')).status).toBe(200)
  await sweep()
  expect(objectsOf(sha256('for nobody'))).toHaveLength(1)
  await api.db.upload.deleteMany({})
  await sweep()
  expect(objectsOf(sha256('for nobody'))).toEqual([])
  expect((await api.call('POST', `/deployments/${first.id}/promote`)).status).toBe(202)
  expect(await shown(first.id)).toBe('one')
  const again = await deploy('kept', one)
  expect(again.missing).toEqual([])
  expect(await shown(again.id)).toBe('one')
  // What was forgotten is asked for, and stored anew.
  expect((await deploy('kept', { 'index.html': 'for nobody' })).missing).toEqual([sha256('for nobody')])
  expect((await api.call('DELETE', '/projects/kept')).status).toBeLessThan(300)
  await until(async () => (await api.db.job.count({ where: { kind: 'reap' } })) === 0)
  await sweep()
  for (const text of ['one', 'two', 'both', 'for nobody']) expect(objectsOf(sha256(text))).toEqual([])
})

it('serves the right content again after a damaged one was deployed once more', async () => {
  const { api } = platform
  await api.call('POST', '/projects', { body: { name: 'damaged', framework: 'static' } })
  const files = { 'index.html': 'right content' }
  const { id } = await deploy('damaged', files)
  const hash = sha256(files['index.html'])
  const [key] = objectsOf(hash)
  const { body } = server.objects.get(key!)!
  server.objects.get(key!)!.body = Buffer.from(body).fill('x', 0, 5)
  await platform.artifacts.report(hash)
  await storage().mend(AbortSignal.timeout(60_000))
  // The build that was to repair it has found out that nobody has it.
  await until(async () => (await api.db.sourceFile.count({ where: { sha256: hash, present: false } })) > 0)
  await deploy('damaged', files)
  expect(await elsewhere.isWhole(hash)).toBe(true)
  expect(await shown(id)).toBe('right content')
})
