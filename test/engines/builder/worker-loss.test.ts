import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
const children = new Set<ChildProcess>()
beforeAll(async () => {
  platform = await startPlatform({}, false)
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await platform.stop()
})

/** A worker of its own, as another machine would run it. */
function startWorkerProcess(): ChildProcess {
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
  children.add(child)
  return child
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
  children.delete(child)
}

// What passes in half a minute, at once: the dead worker's lease ends.
const endLease = () => platform.api.db.job.updateMany({ data: { lockedUntil: new Date(Date.now() - 1000) } })

function running(args: string): boolean {
  const { stdout } = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  return stdout.split('\n').some((line) => line.trim() === args)
}

test('a build whose worker dies by kill -9 is built once more by another, and leaves no process behind', async () => {
  const sleep = `sleep 4.5${process.pid}`
  const build = `${sleep}; mkdir -p dist; echo done > dist/index.html`
  await platform.project('lost', { 'package.json': scripts({ build }) }, { framework: 'vite' })
  const first = startWorkerProcess()
  const id = await platform.deploy('lost')
  await until(() => running(sleep))
  await killed(first)
  await until(() => !running(sleep))
  await endLease()
  const second = startWorkerProcess()
  expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
  expect(await platform.file(id, 'index.html')).toBe('done\n')
  second.kill('SIGTERM')
  expect((await once(second, 'exit'))[0]).toBe(0)
  children.delete(second)
})

test('a build that loses its second worker too ends in ERROR worker_lost', async () => {
  const build = uniqueSleep()
  await platform.project('doomed', { 'package.json': scripts({ build }) })
  const id = await platform.deploy('doomed')
  for (let i = 0; i < 2; i++) {
    const worker = startWorkerProcess()
    await until(() => running(build))
    await killed(worker)
    await until(() => !running(build))
    await endLease()
  }
  const last = startWorkerProcess()
  expect(await platform.settled(id)).toMatchObject({ state: 'ERROR', error: { code: 'worker_lost' } })
  await killed(last)
})
