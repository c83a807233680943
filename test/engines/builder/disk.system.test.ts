import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freeBytes } from '../../../src/platform/files/disk.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

// A disk of its own, as small as can be filled: where none can be mounted, nothing is shown here.
const disk = mkdtempSync(join(tmpdir(), 'berth-disk-'))
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=711', 'berth', disk]).status === 0

let platform: Platform
beforeAll(async () => {
  if (mounted) platform = await startPlatform({ DATA_DIR: disk, DISK_RESERVE_MB: '4' })
})
afterAll(async () => {
  await platform?.stop().catch(() => {})
  if (mounted) execFileSync('umount', ['-l', disk])
  await rm(disk, { recursive: true, force: true })
})

const filler = join(disk, 'filler')

/** Leaves this much free. */
async function fill(leftMb: number, path = filler): Promise<void> {
  await writeFile(path, Buffer.alloc(Math.floor((await freeBytes(disk)) - leftMb * 1024 ** 2), 1))
}

test.runIf(mounted)('a disk that can have no more files has no room, whatever is free', async () => {
  const few = mkdtempSync(join(tmpdir(), 'berth-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,nr_inodes=100', 'berth', few])
  try {
    expect(await freeBytes(few)).toBeLessThan(2 * 1024 ** 2)
    for (let n = 0; n < 80; n++) await writeFile(join(few, String(n)), '')
    expect(await freeBytes(few)).toBeLessThan(0.4 * 1024 ** 2)
  } finally {
    execFileSync('umount', ['-l', few])
    await rm(few, { recursive: true, force: true })
  }
})

/** What passes while a build waits for room, at once. */
const runAgain = (id: string) => platform.api.db.job.updateMany({ where: { key: id }, data: { runAt: new Date() } })
const putBack = async (id: string) => {
  const job = await until(() =>
    platform.api.db.job.findFirst({ where: { kind: 'build', key: id, lockedBy: null, attempts: 0 } }),
  )
  return (job.payload as { noDiskSince?: string }).noDiskSince
}
const stateOf = async (id: string) => (await platform.api.call('GET', `/deployments/${id}`)).body.state

/** Ends the longest wait, and returns how the deployment ended. */
async function afterTheLongestWait(id: string) {
  await until(() => putBack(id))
  const payload = { deploymentId: id, noDiskSince: new Date(Date.now() - 3600_000).toISOString() }
  await platform.api.db.job.updateMany({ where: { key: id }, data: { runAt: new Date(), payload } })
  return platform.settled(id)
}

async function expectOurFault(id: string): Promise<void> {
  const ended = await afterTheLongestWait(id)
  expect(ended).toMatchObject({ state: 'ERROR', error: { code: 'platform_disk_full' } })
  expect(ended.error.message).toContain('The platform is out of disk space')
  const log = await platform.log(id)
  expect(log).toContain('Waiting for free disk space on the platform')
  expect(log).not.toContain(disk)
  await until(async () => !(await readdir(join(disk, 'builds'))).includes(id))
}

describe.skipIf(!mounted)('a full disk of the platform', () => {
  test('makes a build wait before it begins, and go on when there is room', async () => {
    await platform.project('waits', { 'index.html': 'there was room' })
    await fill(3)
    const id = await platform.deploy('waits')
    expect(await until(() => putBack(id))).toBeTruthy()
    expect(await stateOf(id)).toBe('BUILDING')
    expect(await platform.log(id)).toContain('Waiting for free disk space on the platform')
    await rm(filler)
    await runAgain(id)
    expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
    expect(await platform.file(id, 'index.html')).toBe('there was room')
  })

  test('during the clone is the fault of the platform', async () => {
    await platform.project('large', { 'index.html': 'x', 'a.bin': randomBytes(4 << 20).toString('hex') })
    await fill(4.1)
    await expectOurFault(await platform.deploy('large'))
    await rm(filler)
  })

  test('during a command is the fault of the platform', async () => {
    const build = 'head -c 30000000 /dev/zero > a.bin && mkdir dist && echo x > dist/index.html'
    await platform.project('writes', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    await expectOurFault(await platform.deploy('writes'))
  })

  test('while the files are stored is the fault of the platform', async () => {
    const build =
      'mkdir dist; for i in 1 2 3; do head -c 2500000 /dev/urandom > dist/$i.bin; done; echo x > dist/index.html'
    await platform.project('publishes', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    await fill(13)
    await expectOurFault(await platform.deploy('publishes'))
    const files = await readdir(join(disk, 'artifacts/files'), { recursive: true })
    expect(files.filter((name) => name.endsWith('.new'))).toEqual([])
    await rm(filler)
  })

  test('does without the cached dependencies of a server rather than take the reserve for them', async () => {
    const files = {
      'package.json': scripts({
        build: 'mkdir -p node_modules/m && head -c 2000000 /dev/zero > node_modules/m/a',
        start: 'node server.js',
      }),
      'server.js': `require('http').createServer((_, answer) => answer.end('up')).listen(process.env.PORT)`,
    }
    await platform.project('copied', files, { framework: 'node' })
    const cached = async () => {
      const id = await platform.deploy('copied')
      expect(await platform.settled(id)).toMatchObject({ state: 'READY' })
      await until(async () => !(await readdir(join(disk, 'builds'))).includes(id))
      const found = await readdir(join(disk, 'cache'), { recursive: true })
      return found.filter((path) => path.endsWith('folders/0/m'))
    }
    await fill(7)
    expect(await cached()).toEqual([])
    await rm(filler)
    expect(await cached()).toHaveLength(1)
  })

  test('takes the caches of builds before it makes anybody wait', async () => {
    const cache = join(disk, 'cache', 'prj_any', 'production')
    execFileSync('mkdir', ['-p', cache])
    await writeFile(join(cache, 'note.json'), JSON.stringify({ key: null, kb: 1, usedAt: new Date().toISOString() }))
    await fill(2, join(cache, 'filler'))
    await platform.project('roomy', { 'index.html': 'room was made' })
    expect(await platform.settled(await platform.deploy('roomy'))).toMatchObject({ state: 'READY' })
  })

  test('does not excuse a build that fails by itself', async () => {
    const build = 'echo "ENOSPC: No space left on device" >&2; exit 1'
    await platform.project('fails', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    const ended = await platform.settled(await platform.deploy('fails'))
    expect(ended).toMatchObject({ state: 'ERROR', error: { code: 'build_failed' } })
  })
})
