import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import { createHealth } from '../../src/platform/observe/health.ts'
import { serveMetrics } from '../../src/platform/observe/metrics.ts'

test('is ok while all checks are, and names each that is not', async () => {
  const health = createHealth(['api'])
  let reason: string | null = null
  health.add('disk', () => reason)
  const remove = health.add('queue', async () => null)
  expect(await health.check()).toEqual({ status: 'ok', checks: { disk: 'ok', queue: 'ok' } })
  reason = 'The disk is full.'
  expect(await health.check()).toEqual({ status: 'unavailable', checks: { disk: 'The disk is full.', queue: 'ok' } })
  remove()
  expect((await health.check()).checks).toEqual({ disk: 'The disk is full.' })
})

test('a check that throws or hangs has failed, and holds up nobody', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const health = createHealth(['api'])
  health.add('throws', () => {
    throw new Error('a secret')
  })
  health.add('hangs', () => new Promise(() => {}))
  const looked = health.check()
  await vi.advanceTimersByTimeAsync(3_000)
  const report = await looked
  vi.useRealTimers()
  expect(report.status).toBe('unavailable')
  expect(Object.keys(report.checks)).toEqual(['throws', 'hangs'])
  expect(Object.values(report.checks)).not.toContain('ok')
  expect(JSON.stringify(report)).not.toContain('a secret')
})

test('a role that works without what failed is degraded, the others are unavailable', async () => {
  const health = createHealth(['api', 'edge'])
  health.add('database', () => 'It is away.', ['api', 'worker'])
  expect((await health.check('edge')).status).toBe('degraded')
  expect((await health.check('api')).status).toBe('unavailable')
  expect((await health.check()).status).toBe('unavailable')
  expect((await health.check('worker')).status).toBe('unavailable')
  expect((await createHealth(['edge']).check()).status).toBe('ok')
})

test('many who ask at once share one check', async () => {
  const health = createHealth(['api'])
  const check = vi.fn(async () => null)
  health.add('database', check)
  await Promise.all(Array.from({ length: 50 }, () => health.check()))
  expect(check).toHaveBeenCalledTimes(1)
  await health.check()
  expect(check).toHaveBeenCalledTimes(2)
})

test('the metrics port tells of health and readiness', async () => {
  const health = createHealth(['edge'])
  const server = await serveMetrics({ registry: new Registry(), health }, '127.0.0.1', 0)
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (path: string) => {
    const answer = await fetch(address + path)
    return { status: answer.status, body: (await answer.json()) as object }
  }
  expect(await ask('/readyz')).toEqual({ status: 200, body: { status: 'ok', checks: {} } })
  health.add('hosts', () => 'There are none.')
  const checks = { hosts: 'There are none.' }
  expect(await ask('/readyz?x=1')).toEqual({ status: 503, body: { status: 'unavailable', checks } })
  expect((await ask('/readyz?role=edge')).status).toBe(503)
  expect(await ask('/healthz')).toEqual({ status: 200, body: { status: 'ok' } })
  expect((await fetch(`${address}/metrics`)).status).toBe(200)
  expect((await fetch(`${address}/toString`)).status).toBe(404)
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
})
