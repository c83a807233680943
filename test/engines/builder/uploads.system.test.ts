// Deployments without git, from the upload to what is served; and that the sweep keeps what they need.
import { createHash } from 'node:crypto'
import { rm, utimes, writeFile } from 'node:fs/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createStorage } from '../../../src/engines/storage/index.ts'
import { type Platform, startPlatform } from './host.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})

afterAll(() => platform.stop())

const sha256 = (content: string) => createHash('sha256').update(content).digest('hex')

type Files = Record<string, string>

async function deploy(project: string, files: Files, more: object = {}) {
  const { api } = platform
  const listed = Object.entries(files).map(([path, content]) => ({
    path,
    sha256: sha256(content),
    size: Buffer.byteLength(content),
    ...(path.startsWith('bin/') && { mode: 0o755 }),
  }))
  const body = { project, production: true, source: { files: listed, ...more } }
  const made = await api.call('POST', '/deployments', { body })
  expect(made.status, made.text).toBe(201)
  for (const hash of made.body.uploads.missing) {
    const content = Object.values(files).find((one) => sha256(one) === hash)!
    const headers = { 'content-type': 'application/octet-stream' }
    const answer = await api.call('PUT', `/uploads/${hash}`, { body: Buffer.from(content), headers })
    expect(answer.status, answer.text).toBe(200)
  }
  return { id: made.body.id as string, missing: made.body.uploads.missing as string[] }
}

it('publishes uploaded files as they are, and only what changed is asked for the next time', async () => {
  await platform.api.call('POST', '/projects', { body: { name: 'plain', framework: 'static' } })
  const files = { 'index.html': '<h1>hi</h1>', 'ä b/"c".txt': 'quoted', empty: '' }
  const { id } = await deploy('plain', files, { prebuilt: true })
  expect(await platform.settled(id), await platform.log(id)).toMatchObject({ state: 'READY', current: true, files: 3 })
  expect(await platform.file(id, 'ä b/"c".txt')).toBe('quoted')
  const next = await deploy('plain', { ...files, 'index.html': '<h1>new</h1>' }, { prebuilt: true })
  expect(next.missing).toEqual([sha256('<h1>new</h1>')])
  expect(await platform.settled(next.id)).toMatchObject({ state: 'READY', current: true })
  expect(await platform.file(next.id, 'index.html')).toBe('<h1>new</h1>')
})

it('builds what needs a build, with programs that can be run', async () => {
  const settings = { buildCommand: 'bin/make', outputDirectory: 'out' }
  await platform.api.call('POST', '/projects', { body: { name: 'built', settings } })
  const files = { 'bin/make': '#!/bin/sh\nmkdir out && sed s/a/b/ in.txt > out/index.html\n', 'in.txt': 'a' }
  const { id } = await deploy('built', files)
  expect(await platform.settled(id), await platform.log(id)).toMatchObject({ state: 'READY' })
  expect((await platform.file(id, 'index.html'))?.trim()).toBe('b')
})

it('keeps uploaded files in the sweep for as long as a deployment or the hour needs them', async () => {
  const { api, artifacts } = platform
  const settings = { buildCommand: 'mkdir out && cp page out/index.html', outputDirectory: 'out' }
  await api.call('POST', '/projects', { body: { name: 'swept', settings } })
  const { id } = await deploy('swept', { page: 'served', kept: 'only in the source' })
  expect(await platform.settled(id), await platform.log(id)).toMatchObject({ state: 'READY' })
  const headers = { 'content-type': 'application/octet-stream' }
  const waiting = 'waits for a deployment'
  await api.call('PUT', `/uploads/${sha256(waiting)}`, { body: Buffer.from(waiting), headers })
  const storage = createStorage({ config: api.config, db: api.db, artifacts, log: pino({ level: 'silent' }) })
  const left = async () => {
    for (const content of ['only in the source', waiting]) {
      await utimes(artifacts.pathOf(sha256(content)), new Date(0), new Date(0)).catch(() => {})
    }
    await storage.sweep(AbortSignal.timeout(60_000))
    return Promise.all(['only in the source', waiting].map((content) => artifacts.isWhole(sha256(content))))
  }
  expect(await left()).toEqual([true, true])
  await api.db.upload.deleteMany({})
  expect(await left()).toEqual([true, false])
  await api.db.project.updateMany({ where: { name: 'swept' }, data: { currentDeploymentId: null } })
  expect((await api.call('DELETE', `/deployments/${id}`)).status).toBe(204)
  expect(await left()).toEqual([false, false])
})

it('ends with a reason if the files are not kept any more', async () => {
  const { api, artifacts } = platform
  const made = await api.call('POST', '/projects', { body: { name: 'lost' } })
  const content = 'soon gone'
  const headers = { 'content-type': 'application/octet-stream' }
  await api.call('PUT', `/uploads/${sha256(content)}`, { body: Buffer.from(content), headers })
  await rm(artifacts.pathOf(sha256(content)))
  const { id } = await deploy(made.body.name, { 'index.html': content })
  expect(await platform.settled(id)).toMatchObject({ state: 'ERROR', error: { code: 'upload_incomplete' } })
  // What the message advises helps: the content is asked for again.
  const again = await deploy(made.body.name, { 'index.html': content }, { prebuilt: true })
  expect(again.missing).toEqual([sha256(content)])
  expect(await platform.settled(again.id), await platform.log(again.id)).toMatchObject({ state: 'READY' })
})

it('asks for a source again that the scrub found damaged, and brings what is served back by it', async () => {
  const { api, artifacts } = platform
  await api.call('POST', '/projects', { body: { name: 'damaged', framework: 'static' } })
  const files = { 'index.html': 'shown to visitors', 'b.txt': 'b' }
  const { id } = await deploy('damaged', files, { prebuilt: true })
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  const hash = sha256(files['index.html'])
  await writeFile(artifacts.pathOf(hash), 'shown to nobody!!')
  await artifacts.report(hash)
  const storage = createStorage({ config: api.config, db: api.db, artifacts, log: pino({ level: 'silent' }) })
  await storage.mend(AbortSignal.timeout(60_000))
  await expect.poll(() => api.db.sourceFile.count({ where: { sha256: hash, present: false } })).toBe(1)
  const again = await deploy('damaged', files, { prebuilt: true })
  expect(again.missing).toEqual([hash])
  expect(await platform.settled(again.id), await platform.log(again.id)).toMatchObject({ state: 'READY' })
  expect(await platform.file(id, 'index.html')).toBe('shown to visitors')
  expect(await api.db.deploymentSource.findMany({ where: { missing: { not: 0 } } })).toEqual([])
})
