// Builds that the machine ends, not their own fault: they are retried, and only a build that is killed again is to blame.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { controlGroups, limitRuns, processesWith, uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, sandboxRequired, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 60_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.stop())

const lossesOf = async (key: string) => {
  const [job] = await platform.api.db.job.findMany({ where: { kind: 'build', key } })
  return [job?.losses, job?.failures]
}

describe('a build', () => {
  test('that somebody on the machine kills is retried', async () => {
    const sleep = uniqueSleep()
    const pause = (value: string) => platform.api.call('PUT', '/projects/killed/env/PAUSE', { body: { value } })
    const build = 'sleep $PAUSE && mkdir -p dist && echo done > dist/index.html'
    await platform.project('killed', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    await pause(sleep.split(' ')[1]!)
    const id = await platform.deploy('killed')
    const own = () => processesWith(sleep).filter((pid) => Number(pid) !== process.pid)
    await until(() => own().length > 0)
    await pause('0')
    for (const pid of own()) process.kill(Number(pid), 'SIGKILL')
    expect(await platform.settled(id)).toMatchObject({ state: 'READY', error: null })
    expect(await platform.file(id, 'index.html')).toBe('done\n')
    expect(await platform.log(id)).toMatch(
      /build: npm run build was killed \(SIGKILL\)\. A build that is killed is retried/,
    )
  })

  test('that is killed again is to blame, and says what is known', async () => {
    await platform.project('kills', { 'package.json': scripts({ build: 'kill -9 $$' }) })
    const deployment = await platform.settled(await platform.deploy('kills'))
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'build_failed' } })
    const known = controlGroups(process.pid).all.length > 0
    expect(deployment.error.message).toMatch(/^npm run build was killed \(SIGKILL\), and again when we retried it\. /)
    expect(deployment.error.message).toContain(known ? 'It did not run out of memory' : 'BUILD_MEMORY_MB')
  })

  test('that needs more memory than it may use ends, and names the limit and its setting', async ({ skip }) => {
    if (!limitRuns(2048) && !sandboxRequired) return skip('no control groups can be made here')
    const build = 'node -e "const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))"'
    await platform.project('hungry', { 'package.json': scripts({ build }) })
    platform.api.config.build.memoryMb = 128
    const deployment = await platform.settled(await platform.deploy('hungry'))
    platform.api.config.build.memoryMb = 2048
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'build_out_of_memory' } })
    expect(deployment.error.message).toMatch(/^npm run build needed more than the 128 MB .* BUILD_MEMORY_MB\.$/)
  })

  test('that the machine has no memory for is lost, and built again', async ({ skip }) => {
    if (!limitRuns(200) && !sandboxRequired) return skip('no control groups can be made here')
    const allocates = 'const all = []; for (let i = 0; i < 400; i++) all.push(Buffer.alloc(1 << 20, 1))'
    const build = `node -e '${allocates}' && mkdir -p dist && echo done > dist/index.html`
    await platform.project('unlucky', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    const id = await platform.deploy('unlucky')
    await until(async () => (await lossesOf(id))[0] === 1)
    limitRuns(2048)
    expect(await lossesOf(id)).toEqual([1, 0])
    expect(await platform.settled(id)).toMatchObject({ state: 'READY', error: null })
    expect(await platform.log(id)).toContain('The build was lost: the machine ran out of memory. We will retry it.')
  })
})
