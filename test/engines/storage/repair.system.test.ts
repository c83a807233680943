import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStorage, type Storage } from '../../../src/engines/storage/index.ts'
import { measureOld } from '../../../src/engines/storage/measure.ts'
import { scrub } from '../../../src/engines/storage/scrub.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, startPlatform } from '../builder/host.ts'

let platform: Platform
const never = new AbortController().signal
const registry = new Registry()
let storage: Storage
beforeAll(async () => {
  platform = await startPlatform()
  storage = createStorage({ ...platform.api.deps, artifacts: platform.artifacts, registry })
})
afterAll(() => platform.stop())

const damagedCount = async () => /^berth_artifacts_damaged (\d+)$/m.exec(await registry.metrics())?.[1]
const scrubAll = () => scrub(platform.artifacts, never, 256)

/** A build tidies up after its deployment is READY; one that repairs it works in the same directory. */
async function built(id: string): Promise<void> {
  await platform.settled(id)
  await until(async () => (await platform.api.db.job.count({ where: { kind: 'build', key: id } })) === 0)
}

test('the scrub finds a changed file, and a build of its commit brings it back', async () => {
  await platform.project('site', { 'index.html': '<h1>whole</h1>', 'other.txt': 'other' })
  const id = await platform.deploy('site')
  await built(id)
  const manifest = await readFile(join(platform.artifacts.folders.manifests, `${id}.json`), 'utf8')
  const path = platform.artifacts.pathOf(JSON.parse(manifest).files['index.html'].hash)
  await writeFile(path, '<h1>wholf</h1>')
  expect(await scrubAll()).toBe(2)
  expect(await damagedCount()).toBe('1')
  await storage.mend(never)
  await until(async () => (await readFile(path, 'utf8')) === '<h1>whole</h1>')
  await until(async () => (await platform.api.db.job.count({ where: { kind: 'repair' } })) === 0)
  await storage.mend(never)
  expect(await damagedCount()).toBe('0')
  // What is served, and what its owner sees, is as it was.
  expect(await readFile(join(platform.artifacts.folders.manifests, `${id}.json`), 'utf8')).toBe(manifest)
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
})

test('a manifest that is lost is made again', async () => {
  await platform.project('lost', { 'index.html': 'hello' })
  const id = await platform.deploy('lost')
  await built(id)
  const before = await platform.artifacts.read(id)
  await writeFile(join(platform.artifacts.folders.manifests, `${id}.json`), '')
  await platform.artifacts.report(id)
  await storage.mend(never)
  await until(async () => (await platform.artifacts.read(id)) !== null)
  expect(await platform.artifacts.read(id)).toEqual(before)
})

test('a file that no build brings back is told, and no build is repeated for it', async () => {
  await platform.project('moved', { 'index.html': 'once' })
  const id = await platform.deploy('moved')
  await built(id)
  const { hash } = (await platform.artifacts.read(id))!.files['index.html']!
  await rm(platform.artifacts.pathOf(hash))
  await platform.artifacts.report(hash)
  await platform.api.db.deployment.update({ where: { id }, data: { commit: '0'.repeat(40) } })
  await storage.mend(never)
  await until(() => platform.api.db.job.count({ where: { kind: 'repair', key: hash, attempts: 1, lockedBy: null } }))
  await platform.api.db.job.deleteMany({ where: { kind: 'repair' } })
  await storage.mend(never)
  expect(await platform.api.db.job.count({ where: { kind: 'repair' } })).toBe(0)
  expect(await damagedCount()).toBe('1')
})

test('a damaged file that no deployment has is forgotten', async () => {
  for (const name of await platform.artifacts.damaged()) await rm(join(platform.artifacts.folders.damaged, name))
  const { hash } = await platform.artifacts.store('a.txt', 5, [Buffer.from('alone')])
  await writeFile(platform.artifacts.pathOf(hash), 'alonf')
  await scrubAll()
  expect(await platform.artifacts.damaged()).toContain(hash)
  await storage.mend(never)
  expect(await platform.artifacts.damaged()).not.toContain(hash)
  expect(await platform.api.db.job.count({ where: { kind: 'repair' } })).toBe(0)
})

test('a deployment from before bytes were counted is counted once, and one above the quota is kept', async () => {
  const { db } = platform.api
  await platform.project('old', { 'index.html': '<h1>old</h1>', 'same.html': '<h1>old</h1>' })
  const id = await platform.deploy('old')
  await built(id)
  const bytesOf = async () => (await db.deployment.findUniqueOrThrow({ where: { id } })).storedBytes
  expect(await bytesOf()).toBe(12n)
  const { accountId } = await db.deployment.findUniqueOrThrow({ where: { id } })
  await db.deployment.updateMany({ data: { storedBytes: 0 } })
  await db.account.update({ where: { id: accountId }, data: { limits: { storedBytes: 1 } } })
  expect(await measureOld(db, platform.artifacts, never)).toBe(0)
  expect(await bytesOf()).toBe(0n)
  await db.account.update({ where: { id: accountId }, data: { limits: {} } })
  expect(await measureOld(db, platform.artifacts, never)).toBeGreaterThan(0)
  expect(await bytesOf()).toBe(12n)
  expect(await measureOld(db, platform.artifacts, never)).toBe(0)
})
