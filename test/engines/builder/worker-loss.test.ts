import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
const workers = new Map<number, ChildProcess>()
beforeAll(async () => {
  platform = await startPlatform({}, false)
  // Those that the two tests kill, and the last. Side by side, since a start takes seconds.
  for (let count = 0; count < 4; count++) startWorkerProcess()
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

/** Ends the worker that builds the deployment. */
async function killWorkerOf(deploymentId: string): Promise<void> {
  const { db } = platform.api
  const { lockedBy } = await db.job.findFirstOrThrow({ where: { kind: 'build', key: deploymentId } })
  const pid = Number(/-(\d+)-\w+$/.exec(lockedBy!)![1])
  const child = workers.get(pid)!
  child.kill('SIGKILL')
  await once(child, 'exit')
  workers.delete(pid)
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

test('a build that loses its second worker too ends in ERROR worker_lost', async () => {
  const build = uniqueSleep()
  await platform.project('doomed', { 'package.json': scripts({ build }) })
  const id = await platform.deploy('doomed')
  for (let i = 0; i < 2; i++) {
    await until(() => running(build))
    await killWorkerOf(id)
    await until(() => !running(build))
    await endLease()
  }
  expect(await platform.settled(id)).toMatchObject({ state: 'ERROR', error: { code: 'worker_lost' } })
  const [last] = workers.values()
  last!.kill('SIGTERM')
  expect((await once(last!, 'exit'))[0]).toBe(0)
  workers.clear()
})
