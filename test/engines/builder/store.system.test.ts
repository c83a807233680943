import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createStorage } from '../../../src/engines/storage/index.ts'
import type { Artifacts } from '../../../src/platform/artifacts/artifacts.ts'
import { openArtifacts } from '../../../src/platform/storage/open-artifacts.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

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
afterEach(() => {
  server.trouble = null
})

const never = new AbortController().signal
const jobOf = (id: string) => platform.api.db.job.findFirst({ where: { kind: 'build', key: id } })
const putBack = async (id: string) =>
  (await until(async () => {
    const job = await jobOf(id)
    return job?.lockedBy === null && job.attempts === 0 && (job.payload as { noStoreSince?: string }).noStoreSince
  })) as string
/** A build tidies up after its deployment is READY; one that repairs it works in the same directory. */
const jobEnded = (id: string) => until(async () => (await jobOf(id)) === null)
const runAgain = (id: string) => platform.api.db.job.updateMany({ where: { key: id }, data: { runAt: new Date() } })
const stateOf = async (id: string) => (await platform.api.call('GET', `/deployments/${id}`)).body.state

async function deployed(name: string, text = `hello ${name}`): Promise<string> {
  await platform.project(name, { 'index.html': text })
  const id = await platform.deploy(name)
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  return id
}

test('a deployment is READY when every machine has it', async () => {
  const id = await deployed('everywhere')
  const manifest = await elsewhere.read(id)
  expect((await elsewhere.load(manifest!.files['index.html']!.hash)).toString()).toBe('hello everywhere')
  expect(server.objects.has(`manifests/${id}.json`)).toBe(true)
})

test('a deleted deployment is gone from the store, whichever worker takes the job', async () => {
  const id = await deployed('deleted')
  await elsewhere.read(id)
  const next = await platform.deploy('deleted')
  expect(await platform.settled(next)).toMatchObject({ state: 'READY' })
  expect((await platform.api.call('DELETE', `/deployments/${id}`)).status).toBe(204)
  await until(() => !server.objects.has(`manifests/${id}.json`))
  expect(await elsewhere.read(id, { fresh: true })).toBeNull()
})

test('a server is proved from what is in the store, runs elsewhere, and is repaired as a whole', async () => {
  const program = `require('node:http').createServer((_, response) => response.end('x')).listen(process.env.PORT)`
  const files = { 'package.json': scripts({ start: 'node server.js' }), 'server.js': program }
  await platform.project('server', files, { framework: 'node' })
  const id = await platform.deploy('server')
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  await jobEnded(id)
  const programIn = async (store: Artifacts) => {
    const tree = await store.openTree(id)
    tree.release()
    return readFile(join(tree.directory, 'server.js'), 'utf8')
  }
  expect(await programIn(elsewhere)).toBe(program)
  const { hash } = (await elsewhere.read(id, { fresh: true }))!.tree!
  server.objects.get(`files/${hash.slice(0, 2)}/${hash}`)!.body = Buffer.from('damaged')
  await platform.artifacts.report(hash)
  await createStorage({ ...platform.api.deps, artifacts: platform.artifacts }).mend(never)
  await until(async () => (await platform.api.db.job.count({ where: { kind: 'repair' } })) === 0)
  const fresh = openArtifacts({ ...platform.api.config, dataDir: join(directory, 'fresh') })
  expect(await programIn(fresh)).toBe(program)
  fresh.close()
})

describe('a store that cannot be used', () => {
  test.each([
    ['full', 'PUT', { status: 403, code: 'QuotaExceeded' }],
    ['dead', 'PUT', 'close'],
    ['forgetful', 'PUT', 'forget'],
  ] as const)('because it is %s puts the build back, and the build ends well later', async (how, method, trouble) => {
    await platform.project(how, { 'index.html': how })
    // It can be asked, so that the build begins.
    server.trouble = (asked, key) => (asked === method && key.startsWith('files/') ? trouble : null)
    const id = await platform.deploy(how)
    expect(await putBack(id)).toBeTruthy()
    expect(await stateOf(id)).toBe('BUILDING')
    expect(await platform.log(id)).toContain('Waiting for the platform’s artifact store')
    expect(server.objects.has(`manifests/${id}.json`)).toBe(false)
    server.trouble = null
    await runAgain(id)
    expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
    expect(await platform.file(id, 'index.html')).toBe(how)
  })

  test('from the beginning lets no build begin, and after half an hour it is the platform that failed', async () => {
    await platform.project('away', { 'index.html': 'away' })
    server.trouble = () => ({ status: 403, code: 'InvalidAccessKeyId' })
    // Until what is known of the store is asked for again.
    await until(async () => (await platform.artifacts.readiness()) !== null)
    const id = await platform.deploy('away')
    await putBack(id)
    expect(await platform.log(id)).not.toContain('Cloning')
    const payload = { deploymentId: id, noStoreSince: new Date(Date.now() - 3600_000).toISOString() }
    await platform.api.db.job.updateMany({ where: { key: id }, data: { runAt: new Date(), payload } })
    const ended = await platform.settled(id)
    expect(ended).toMatchObject({ state: 'ERROR', error: { code: 'platform_storage_unavailable' } })
    expect(ended.error.message).toContain('Nothing is wrong with the project')
    expect(JSON.stringify(ended) + (await platform.log(id))).not.toMatch(/127\.0\.0\.1|test-access-key/)
    server.trouble = null
    await until(async () => (await platform.artifacts.readiness()) === null)
  })
})

describe('the storage engine', () => {
  const storage = () => createStorage({ ...platform.api.deps, artifacts: platform.artifacts })

  test('removes from the store what no deployment has, and nothing else', async () => {
    const id = await deployed('kept', 'this stays')
    const kept = (await platform.artifacts.read(id))!.files['index.html']!.hash
    const { hash } = await platform.artifacts.store('a.txt', 5, [Buffer.from('alone')])
    server.objects.set('manifests/dpl_000000000000000000000000.json', {
      ...{ body: Buffer.from('{"version":1,"files":{}}'), sha256: undefined, modifiedMs: 0 },
    })
    for (const object of server.objects.values()) object.modifiedMs = 0
    await storage().sweep(never)
    const keys = [...server.objects.keys()]
    expect(keys.some((key) => key.endsWith(hash))).toBe(false)
    expect(keys.some((key) => key.endsWith(kept))).toBe(true)
    expect(keys).toContain(`manifests/${id}.json`)
    expect(keys).not.toContain('manifests/dpl_000000000000000000000000.json')
    expect(keys.filter((key) => key.startsWith('removing/'))).toEqual([])
  })

  test('repairs an object that is damaged in the store', async () => {
    const id = await deployed('damaged', 'as it was')
    await jobEnded(id)
    const { hash } = (await platform.artifacts.read(id))!.files['index.html']!
    const key = `files/${hash.slice(0, 2)}/${hash}`
    server.objects.get(key)!.body = Buffer.from('as it wat')
    await platform.artifacts.report(hash)
    await storage().mend(never)
    await until(() => server.objects.get(key)?.body.toString() === 'as it was')
    await until(async () => (await platform.api.db.job.count({ where: { kind: 'repair' } })) === 0)
    await storage().mend(never)
    expect(await elsewhere.damaged()).toEqual([])
  })
})
