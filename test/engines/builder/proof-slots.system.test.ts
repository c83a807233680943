// A build that waits for its server to answer takes no slot, neither of its worker nor of its account.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ BUILD_CONCURRENCY: '1', QUOTA_BUILDS_AT_ONCE: '1' })
})
afterAll(() => platform.stop())

const silent = { 'package.json': scripts({ start: 'node wait.js' }), 'wait.js': 'setInterval(() => {}, 1000)' }
const state = async (id: string) => (await platform.api.call('GET', `/deployments/${id}`)).body.state
const isProved = (id: string) => until(async () => (await platform.log(id)).includes('run: $'))

test('other builds run while a server is waited for, and its own build is still held', async () => {
  await platform.project('silent', silent, { framework: 'node' })
  await platform.project('quick', { 'index.html': 'hi' })
  const first = await platform.deploy('silent')
  await isProved(first)
  const second = await platform.deploy('quick')
  expect(await platform.settled(second)).toMatchObject({ state: 'READY' })
  expect(await state(first)).toBe('BUILDING')
  const held = await platform.api.db.job.findFirstOrThrow({ where: { kind: 'build', key: first } })
  expect(held).toMatchObject({ aside: true, attempts: 1 })
  expect(held.lockedUntil!.getTime()).toBeGreaterThan(Date.now())
  // As many of an account as it may build at once: another server that is silent keeps its slot.
  const third = await platform.deploy('silent')
  await isProved(third)
  const { aside } = await platform.api.db.job.findFirstOrThrow({ where: { kind: 'build', key: third } })
  expect(aside).toBe(false)
  for (const id of [first, third]) {
    await platform.api.call('POST', `/deployments/${id}/cancel`)
    expect(await platform.settled(id)).toMatchObject({ state: 'CANCELED' })
  }
  // All slots are free again.
  expect(await platform.settled(await platform.deploy('quick'))).toMatchObject({ state: 'READY' })
})
