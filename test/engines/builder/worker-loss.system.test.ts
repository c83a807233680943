import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { enqueue } from '../../../src/jobs/queue.ts'
import { until } from '../../helpers/until.ts'
import { uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
const workers = new Map<number, ChildProcess>()
beforeAll(async () => {
  platform = await startPlatform({}, false)
  // Those that the tests kill, and the last. Side by side, since a start takes seconds.
  for (let count = 0; count < 7; count++) startWorkerProcess()
})
afterAll(async () => {
  for (const child of workers.values()) child.kill('SIGKILL')
  await platform.stop()
})

/** A worker of its own, as another machine would run it. */
function startWorkerProcess(): void {
  const { config, databaseUrl } = platform.api
  const child = spawn(process.execPath, ['dist/src/cli.js', 'serve', '--roles', 'worker'], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      DATA_DIR: config.dataDir,
      GIT_URL_TEMPLATE: platform.host.template,
      METRICS_PORT: '0',
      DRAIN_SECONDS: '0',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
  })
  workers.set(child.pid!, child)
}

async function workerOf(key: string, kind = 'build'): Promise<ChildProcess> {
  const { db } = platform.api
  const { lockedBy } = await db.job.findFirstOrThrow({ where: { kind, key } })
  return workers.get(Number(/-(\d+)-\w+$/.exec(lockedBy!)![1]))!
}

/** Ends the worker that builds the deployment, or has another job. */
async function killWorkerOf(key: string, kind?: string): Promise<void> {
  const child = await workerOf(key, kind)
  child.kill('SIGKILL')
  await once(child, 'exit')
  workers.delete(child.pid!)
}

// What passes in half a minute, at once: the lease of the dead worker ends.
const endLease = () => platform.api.db.job.updateMany({ data: { lockedUntil: new Date(Date.now() - 1000) } })

function running(args: string): boolean {
  const { stdout } = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  return stdout.split('\n').some((line) => line.trim() === args)
}

test('a build whose worker dies by kill -9 is built once more by another, and leaves no process behind', async () => {
  const sleep = uniqueSleep()
  const build = 'sleep $PAUSE; mkdir -p dist; echo done > dist/index.html'
  await platform.project('lost', { 'package.json': scripts({ build }) }, { framework: 'vite' })
  const pause = (value: string) => platform.api.call('PUT', '/projects/lost/env/PAUSE', { body: { value } })
  await pause(sleep.split(' ')[1]!)
  const id = await platform.deploy('lost')
  await until(() => running(sleep), 90_000)
  await killWorkerOf(id)
  await until(() => !running(sleep))
  await pause('0')
  await endLease()
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  expect(await platform.file(id, 'index.html')).toBe('done\n')
})

const pauses = (name: string) => async (value: string) => {
  await platform.api.call('PUT', `/projects/${name}/env/PAUSE`, { body: { value } })
}
const workDirectory = (id: string) => join(platform.api.config.dataDir, 'builds', id)

test('what a dead worker left is removed also when the build is canceled afterwards', async () => {
  const build = uniqueSleep()
  await platform.project('canceled', { 'package.json': scripts({ build }) })
  const id = await platform.deploy('canceled')
  await until(() => running(build), 90_000)
  await killWorkerOf(id)
  await until(() => !running(build))
  await endLease()
  await until(() => running(build), 90_000)
  expect(existsSync(workDirectory(id))).toBe(true)
  await platform.api.call('POST', `/deployments/${id}/cancel`)
  await until(() => !existsSync(workDirectory(id)))
})

test('a worker that was away when another took its build over harms neither that build nor its result', async () => {
  const build = 'sleep $PAUSE; mkdir -p dist; echo $PAUSE > dist/index.html'
  await platform.project('away', { 'package.json': scripts({ build }) }, { framework: 'vite' })
  const pause = pauses('away')
  const first = uniqueSleep()
  // Longer than a worker needs to hear that its lease is lost.
  const second = `sleep 12.${randomInt(1e6, 2e6)}`
  await pause(first.split(' ')[1]!)
  const id = await platform.deploy('away')
  await until(() => running(first), 90_000)
  const stopped = await workerOf(id)
  stopped.kill('SIGSTOP')
  await pause(second.split(' ')[1]!)
  await endLease()
  await until(() => running(second), 90_000)
  stopped.kill('SIGCONT')
  await until(() => !running(first))
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  expect(await platform.file(id, 'index.html')).toBe(`${second.split(' ')[1]}\n`)
  await until(() => !existsSync(workDirectory(id)))
})

test('a worker that has not heard that it lost its build publishes nothing', async () => {
  const { db } = platform.api
  const build = 'sleep $PAUSE; mkdir -p dist; echo done > dist/index.html'
  await platform.project('unheard', { 'package.json': scripts({ build }) }, { framework: 'vite' })
  const pause = `1.${randomInt(1e6, 2e6)}`
  await pauses('unheard')(pause)
  const id = await platform.deploy('unheard')
  await until(() => running(`sleep ${pause}`), 90_000)
  const where = { kind: 'build', key: id }
  await db.job.updateMany({ where, data: { lockedBy: 'another', lockedUntil: new Date(Date.now() + 3600_000) } })
  await until(() => !existsSync(workDirectory(id)))
  expect((await db.deployment.findUniqueOrThrow({ where: { id } })).state).toBe('BUILDING')
  expect(await platform.artifacts.read(id)).toBeNull()
  await db.job.updateMany({ where, data: { lockedBy: null, lockedUntil: null, attempts: 0, losses: 0 } })
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
})

test('a repair whose worker dies is made by another, and nothing is left of the first', async () => {
  const { db, config } = platform.api
  const build = 'sleep $PAUSE; mkdir -p dist; echo whole > dist/index.html'
  await platform.project('damaged', { 'package.json': scripts({ build }) }, { framework: 'vite' })
  await pauses('damaged')('0')
  const id = await platform.deploy('damaged')
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  await until(async () => (await db.job.count({ where: { key: id } })) === 0)
  const { hash } = (await platform.artifacts.read(id))!.files['index.html']!
  await writeFile(platform.artifacts.pathOf(hash), 'wholf\n')
  const sleep = uniqueSleep()
  await pauses('damaged')(sleep.split(' ')[1]!)
  await enqueue(db, { kind: 'repair', key: hash, payload: { hash, deploymentIds: [id] } })
  await until(() => running(sleep), 90_000)
  await killWorkerOf(hash, 'repair')
  await until(() => !running(sleep))
  await pauses('damaged')('0')
  await endLease()
  await until(async () => (await platform.file(id, 'index.html').catch(() => null)) === 'whole\n', 90_000)
  await until(async () => (await db.job.count({ where: { kind: 'repair' } })) === 0)
  expect((await readdir(join(config.dataDir, 'builds'))).filter((name) => name.startsWith(id))).toEqual([])
})

test('a build that keeps losing its workers is built once more after each, and ends in ERROR worker_lost at last', async () => {
  const { db } = platform.api
  const build = uniqueSleep()
  await platform.project('doomed', { 'package.json': scripts({ build }) })
  const id = await platform.deploy('doomed')
  const where = { kind: 'build', key: id }
  for (let losses = 0; losses < 2; losses++) {
    await until(() => running(build), 90_000)
    expect(await db.job.findFirstOrThrow({ where })).toMatchObject({ losses, failures: 0, failedAt: null })
    await killWorkerOf(id)
    await until(() => !running(build))
    await endLease()
  }
  await until(() => running(build), 90_000)
  // As if it had lost some more.
  await db.job.updateMany({ where, data: { losses: 5, attempts: 6 } })
  await killWorkerOf(id)
  await until(() => !running(build))
  await endLease()
  const settled = await platform.settled(id)
  expect(settled).toMatchObject({ state: 'ERROR', error: { code: 'worker_lost' } })
  expect(JSON.stringify(settled)).toContain('6 times in a row')
  const [last] = workers.values()
  last!.kill('SIGTERM')
  expect((await once(last!, 'exit'))[0]).toBe(0)
  workers.clear()
})
