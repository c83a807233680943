import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createStorage } from '../../../src/engines/storage/index.ts'
import { sweepBlobs } from '../../../src/engines/storage/sweep-blobs.ts'
import type { Manifest, StoredFile } from '../../../src/platform/artifacts/artifacts.ts'
import { createArtifacts, type LocalArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { newId } from '../../../src/platform/ids.ts'
import { whileNoBackup } from '../../../src/services/deployments/retention/stored-files.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newTenant, type Tenant } from '../../helpers/builds.ts'

let api: TestApi
let tenant: Tenant
let artifacts: LocalArtifacts
const never = new AbortController().signal
beforeAll(async () => {
  api = await sharedApi()
  tenant = await newTenant(api)
})
afterAll(() => api.stop())
beforeEach(async () => {
  await rm(join(api.config.dataDir, 'artifacts'), { recursive: true, force: true })
  artifacts = createArtifacts(join(api.config.dataDir, 'artifacts'))
})

const sweep = () => createStorage({ ...api.deps, artifacts }).sweep(never)
const manifestOf = (files: Manifest['files']): Manifest => ({
  version: 1,
  kind: 'static',
  files,
  spaFallback: false,
  cleanUrls: true,
})

const store = (text: string) => artifacts.store('page.html', text.length, [Buffer.from(text)])
const textOf = (seed: string) => `${seed} `.repeat(500)

/** What passes in two hours, at once. */
async function age(path: string): Promise<void> {
  const then = new Date(Date.now() - 2 * 3600_000)
  await utimes(path, then, then)
}

async function ageBlob({ hash }: StoredFile): Promise<void> {
  for (const encoding of [undefined, 'br', 'gzip'] as const) await age(artifacts.pathOf(hash, encoding)).catch(() => {})
}

async function deploy(files: Manifest['files']): Promise<string> {
  const id = await tenant.ask()
  await artifacts.publish(id, manifestOf(files))
  const storedBytes = Object.values(files).reduce((sum, { size }) => sum + size, 0)
  await finishDeployment(api.db, api.deps.urls, id, { to: 'READY', storedBytes, by: 'system' })
  for (const file of Object.values(files)) await ageBlob(file)
  await age(join(artifacts.folders.manifests, `${id}.json`))
  return id
}

async function removeDeployment(id: string): Promise<void> {
  const { status } = await api.call('DELETE', `/deployments/${id}`, { token: tenant.token })
  expect(status).toBe(204)
  await artifacts.remove(id)
}

const usedBytes = async () => (await api.call('GET', '/account', { token: tenant.token })).body.usage.storedBytes

describe('blobs', () => {
  test('of a deleted deployment are gone, those that others have stay, and the usage is what is left', async () => {
    const [shared, own] = [await store(textOf('shared')), await store(textOf('own'))]
    const before = await usedBytes()
    const first = await deploy({ 'a.html': shared, 'b.html': own })
    await deploy({ 'c.html': shared })
    expect(await usedBytes()).toBe(before + 2 * shared.size + own.size)
    await removeDeployment(first)
    await sweep()
    for (const encoding of [undefined, 'br', 'gzip'] as const) {
      expect(existsSync(artifacts.pathOf(own.hash, encoding))).toBe(false)
      expect(await artifacts.isWhole(shared.hash, encoding)).toBe(true)
    }
    expect(await usedBytes()).toBe(before + shared.size)
  })

  test('that a build stored but has not published yet stay, and are gone when that was long ago', async () => {
    const stored = await store(textOf('unpublished'))
    await sweep()
    expect(await artifacts.isWhole(stored.hash)).toBe(true)
    await ageBlob(stored)
    await sweep()
    expect(existsSync(artifacts.pathOf(stored.hash))).toBe(false)
  })

  test('that a build uses again at the moment they are swept are there when it has ended', async () => {
    const texts = Array.from({ length: 30 }, (_, index) => textOf(`race ${index}`))
    const exclusively = async (work: () => Promise<void>) => work().then(() => true)
    for (let round = 0; round < 4; round++) {
      for (const text of texts) await ageBlob(await store(text))
      const sweeping = sweepBlobs({ artifacts, usedBefore: Date.now() - 3600_000, exclusively, signal: never })
      const files: Manifest['files'] = {}
      for (const text of texts) files[`${text.slice(0, 10)}.html`] = await store(text)
      await sweeping
      await artifacts.publish('dpl_raced', manifestOf(files))
      for (const { hash } of Object.values(files)) expect(await artifacts.isWhole(hash)).toBe(true)
      await artifacts.remove('dpl_raced')
    }
  })

  test('are given back that a sweep had taken away when it was killed', async () => {
    const [taken, linked] = [await store(textOf('taken')), await store(textOf('linked'))]
    await deploy({ 'a.html': taken, 'b.html': linked })
    await rename(artifacts.pathOf(taken.hash), `${artifacts.pathOf(taken.hash)}.swept`)
    await link(artifacts.pathOf(linked.hash), `${artifacts.pathOf(linked.hash)}.swept`)
    await sweep()
    for (const { hash } of [taken, linked]) {
      expect(await artifacts.isWhole(hash)).toBe(true)
      expect(existsSync(`${artifacts.pathOf(hash)}.swept`)).toBe(false)
    }
  })

  test('are swept by two workers at once as by one', async () => {
    const kept = await Promise.all(Array.from({ length: 40 }, (_, index) => store(textOf(`kept ${index}`))))
    const unused = await Promise.all(Array.from({ length: 40 }, (_, index) => store(textOf(`unused ${index}`))))
    await deploy(Object.fromEntries(kept.map((file, index) => [`${index}.html`, file])))
    for (const file of unused) await ageBlob(file)
    await Promise.all([sweep(), sweep()])
    // One may take what the other is about to remove for the remains of a dead sweep, and give it back.
    await sweep()
    for (const { hash } of kept) expect(await artifacts.isWhole(hash, 'gzip')).toBe(true)
    expect(unused.filter(({ hash }) => existsSync(artifacts.pathOf(hash)))).toEqual([])
  })

  test('stay while a backup is taken, and so does everything else of a deleted deployment', async () => {
    const stored = await store(textOf('in the backup'))
    await ageBlob(stored)
    const backup = new pg.Client({ connectionString: api.databaseUrl })
    await backup.connect()
    await backup.query(`SELECT pg_advisory_lock_shared(hashtextextended('berth artifacts', 0))`)
    const exclusively = (work: () => Promise<void>) => whileNoBackup(api.db, 0, work)
    const blobs = { artifacts, usedBefore: Date.now() - 3600_000, exclusively, signal: never }
    expect(await sweepBlobs(blobs)).toEqual({ files: 0, bytes: 0 })
    expect(await artifacts.isWhole(stored.hash)).toBe(true)
    await backup.end()
    await sweep()
    expect(existsSync(artifacts.pathOf(stored.hash))).toBe(false)
  })

  test('and temporary files of builds that died long ago are gone', async () => {
    await store(textOf('any'))
    const left = [join(artifacts.folders.files, 'aa.new'), join(artifacts.folders.files, '0f', 'bb.1234.new')]
    for (const path of left) {
      await mkdir(join(path, '..'), { recursive: true })
      await writeFile(path, 'half')
    }
    await sweep()
    expect(left.every((path) => existsSync(path))).toBe(true)
    for (const path of left) await age(path)
    await sweep()
    expect(left.some((path) => existsSync(path))).toBe(false)
  })
})

describe('what is left of deployments and projects', () => {
  const in_ = (...names: string[]) => join(api.config.dataDir, ...names)

  test('manifests and server trees without a deployment are gone, those of READY and BUILDING ones stay', async () => {
    const ready = await deploy({ 'a.html': await store(textOf('served')) })
    const building = await tenant.ask()
    const failed = await tenant.ask()
    await finishDeployment(api.db, api.deps.urls, failed, { to: 'ERROR', code: 'x', message: 'x', by: 'system' })
    const gone = newId('dpl')
    for (const id of [building, failed, gone]) {
      await artifacts.publish(id, manifestOf({}))
      await mkdir(artifacts.serverDirectory(id), { recursive: true })
      await age(join(artifacts.folders.manifests, `${id}.json`))
      await age(artifacts.serverDirectory(id))
    }
    await sweep()
    expect((await readdir(artifacts.folders.manifests)).sort()).toEqual([`${ready}.json`, `${building}.json`].sort())
    expect(await readdir(artifacts.folders.servers)).toEqual([building])
  })

  test('nothing is removed for a database that knows none of it', async () => {
    for (let i = 0; i < 60; i++) {
      const id = newId('dpl')
      await writeFile(await madeFolder(join(artifacts.folders.manifests, `${id}.json`)), '{}')
      await age(join(artifacts.folders.manifests, `${id}.json`))
    }
    await sweep()
    expect(await readdir(artifacts.folders.manifests)).toHaveLength(60)
  })

  test('work trees of builds that nobody runs are gone, those of builds that wait or run stay', async () => {
    const waiting = await tenant.ask()
    const gone = newId('dpl')
    for (const id of [waiting, gone, `${gone}.manifest`]) await mkdir(in_('builds', id, 'git'), { recursive: true })
    await sweep()
    expect(await readdir(in_('builds'))).toEqual([waiting])
  })

  test('caches of deleted projects are gone, those of others stay', async () => {
    const gone = newId('prj')
    for (const id of [tenant.projectId, gone]) await mkdir(in_('cache', id, 'production'), { recursive: true })
    await sweep()
    expect(await readdir(in_('cache'))).toEqual([tenant.projectId])
  })

  async function madeFolder(path: string): Promise<string> {
    await mkdir(join(path, '..'), { recursive: true })
    return path
  }
})

test('a manifest that is cut off is reported', async () => {
  const id = await deploy({ 'a.html': await store(textOf(randomBytes(4).toString('hex'))) })
  await writeFile(join(artifacts.folders.manifests, `${id}.json`), '')
  await sweep()
  expect(await artifacts.damaged()).toEqual([id])
})
