// A platform on which nobody starts servers.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { buildHandlers, openDisk } from '../../../src/engines/builder/index.ts'
import { createProofs, startRunner } from '../../../src/engines/servers/index.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { sharedPackageRegistry, sharedPrograms, sharedSandbox } from '../../helpers/sandbox.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
let worker: Worker
const started: { close(): Promise<void> }[] = []

async function tools() {
  const { api, artifacts } = platform
  const [packageRegistry, programs] = [sharedPackageRegistry(), sharedPrograms()]
  return { ...api.deps, artifacts, sandbox: await sharedSandbox(), packageRegistry, programs }
}

beforeAll(async () => {
  platform = await startPlatform({}, false)
  const { api } = platform
  const { db, notifications, log } = api.deps
  const servers = createProofs({ db, notifications, placementTimeoutMs: 200 })
  const disk = openDisk({ directory: api.config.dataDir, reserveMb: api.config.diskReserveMb, log })
  worker = startWorker(db, notifications, log, buildHandlers({ ...(await tools()), servers, disk }))
  const server = "require('node:http').createServer((_, answer) => answer.end('up')).listen(process.env.PORT)"
  const files = { 'package.json': scripts({ start: 'node server.js' }), 'server.js': server }
  await platform.project('app', files, { framework: 'node' })
})
afterAll(async () => {
  await worker.stop()
  for (const { close } of started) await close()
  await platform.stop()
})

const job = (id: string) => platform.api.db.job.findFirst({ where: { kind: 'build', key: id } })
const putBack = (id: string) =>
  until(async () => {
    const found = await job(id)
    return found?.lockedBy === null && (found.payload as { noRunnerSince?: string }).noRunnerSince
  })

test('a build waits for a runner, and after half an hour it is the platform that failed', async () => {
  const id = await platform.deploy('app')
  await putBack(id)
  expect((await platform.api.call('GET', `/deployments/${id}`)).body.state).toBe('BUILDING')
  expect(await platform.log(id)).toContain('Waiting for a runner to start the server')
  const payload = { deploymentId: id, noRunnerSince: new Date(Date.now() - 3_600_000).toISOString() }
  await platform.api.db.job.updateMany({ where: { key: id }, data: { runAt: new Date(), payload } })
  const ended = await platform.settled(id)
  expect(ended).toMatchObject({ state: 'ERROR', error: { code: 'platform_runner_unavailable' } })
  expect(ended.error.message).toContain('Nothing is wrong with the project')
})

test('a build that waits is READY when a runner has come', async () => {
  const id = await platform.deploy('app')
  await putBack(id)
  const draining = new AbortController().signal
  started.push(await startRunner({ ...(await tools()), draining }, { id: 'late', address: null }))
  await platform.api.db.job.updateMany({ where: { key: id }, data: { runAt: new Date() } })
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
})
